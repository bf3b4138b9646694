"""The tests that tell what the numbers of a log mean, one question a module."""
