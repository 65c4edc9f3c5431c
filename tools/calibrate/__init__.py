"""Set the cost model's constants from published measurements.

One module a ground, run as `python -m tools.calibrate.rnn`. Each prints errors with the constants as they stand, of a
fit, and of fits that leave cards, networks or sizes out. None reads a point that predictions are judged by.
"""
