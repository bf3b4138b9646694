"""The tracking environment and its terms, over any simulator."""
