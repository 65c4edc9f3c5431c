"""Steps on a real GPU of this machine → `Recording`."""
