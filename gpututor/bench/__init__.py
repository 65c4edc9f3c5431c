"""What we claim about ourselves, measured: how quick the simulated GPU is."""
