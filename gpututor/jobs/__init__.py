"""Training jobs to record: plain torch scripts that know nothing of how they are watched."""
