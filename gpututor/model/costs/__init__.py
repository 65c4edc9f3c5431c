"""Time of each kind of kernel on a card: one module a kind, and `rates` and `tiles` that they share."""
