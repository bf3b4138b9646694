"""The command line, and every stage and the loop as Prefect flows."""
