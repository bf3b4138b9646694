"""TRAM, GVHMR and WHAM: run where the user has them, and their finished results read."""
