"""CUDA's names for the simulated card, taken for a while and given back whole."""
