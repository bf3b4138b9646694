"""Isaac Lab 3.0 as a simulator (extra `isaaclab`, Python 3.12): with Kit and a GPU, or without either on a CPU."""
