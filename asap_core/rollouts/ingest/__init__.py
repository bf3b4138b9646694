"""From the log of a real run to the `Rollout` dataset: readers, understanding, one clock, control steps, quality."""
