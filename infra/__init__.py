"""How the product runs: on one machine without Docker (`local`), and beyond (README.md)."""
