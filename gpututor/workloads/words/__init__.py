"""The next word, by recurrent networks."""
