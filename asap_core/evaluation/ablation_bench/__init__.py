"""What the delta's fit depends on (paper, Fig. 9 to 12): one quantity varied, all else as it is."""
