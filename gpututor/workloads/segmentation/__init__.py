"""A class for every pixel or voxel."""
