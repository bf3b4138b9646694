"""Is a person's motion physically possible, and if not, why and where."""
