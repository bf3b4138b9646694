"""Is a motion physically possible, a person's or a robot's: by rules with their frames, and by an imitating robot."""
