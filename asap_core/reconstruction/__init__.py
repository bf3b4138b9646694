"""A person's video becomes a `HumanMotion`: the embedded estimator, several cameras, other estimators' results."""
