"""A robot profile from a foreign model: URDF or MJCF with its meshes."""
