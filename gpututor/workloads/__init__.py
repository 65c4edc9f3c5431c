"""Well-known networks and training steps by name, in plain torch, for predictions and benchmarks.

`setting.py` says how one is run, `training.py` turns a network into steps, `registry.py` lists them all. A workload is
written for any device; predictions run it on the simulated GPU without numerics.
"""
