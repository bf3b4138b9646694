"""Delta action models: fitting them to rollouts, and acting with them inside a simulator."""
