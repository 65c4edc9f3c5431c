"""Translation: `gnmt.py` with recurrent networks, its batches in `gnmt_batches.py`; `transformer.py` without them."""
