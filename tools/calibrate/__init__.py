"""Set the cost model's constants from published measurements: a module a ground, run as `python -m tools.calibrate.rnn`."""
