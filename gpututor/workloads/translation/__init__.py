"""Translation with recurrent networks: `gnmt.py`, its batches in `gnmt_batches.py`."""
