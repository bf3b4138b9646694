"""Commands of `asap`, one module per capability; `flows.cli` adds them to the command line."""
