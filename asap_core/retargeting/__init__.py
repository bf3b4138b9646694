"""From a person's motion to a robot's: whole-sequence Gauss-Newton over links, feet, ground and smoothness."""
