"""One reader or writer module per motion file format."""
