"""The paced clock, on which the host's time is real, and what a data loader is charged."""
