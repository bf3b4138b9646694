"""Records of human and robot motion, and one module per file format."""
