"""Autocast: CUDA's lists of which operator runs in which number format, and what a card does then."""
