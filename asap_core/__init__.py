"""ASAP: align a simulator with a robot and train policies that survive the difference."""
