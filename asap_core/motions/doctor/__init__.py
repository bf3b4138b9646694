"""Understanding of a motion file by its physics: each decision with its evidence, or an abstention."""
