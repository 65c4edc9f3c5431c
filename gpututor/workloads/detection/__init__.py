"""Finding things in pictures."""
