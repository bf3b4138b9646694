"""How fast the tracking environment and its learner are, and how fast policies learn clips with them."""
