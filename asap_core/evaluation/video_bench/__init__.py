"""How exactly a video becomes a motion: rendered persons whose every joint is known, and one real clip."""
