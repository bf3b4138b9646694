"""The closed-loop table (paper, Table IV): published policies fine-tuned in differently aligned simulators."""
