"""How far our predictions are from what others measured and published.

A file of points (`points.py`) is read row by row into a workload, a setting and a machine (`resolve.py` and the modules
it names), each is predicted (`rows.py`), and the errors are put together by regime (`summary.py`, `what_if.py`).
"""
