"""torch.compile as an account: the code runs as it is, and is charged as Inductor would run it."""
