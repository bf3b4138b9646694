"""Capabilities between the flows and the method: stages, item store, experiment tracking, model registry."""
