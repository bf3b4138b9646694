"""Motion files of other tools: one module per format, and one table of them in `table`."""
