"""Watching: readings of GPUs and CPU as they come, on the terminal, in files and on a page."""
