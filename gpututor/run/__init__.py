"""Somebody's own training script, run unedited: on the simulated card, or watched on the real one.

The script runs in a process of its own (`child`), so that whatever ends it ends nothing else. The parent shows how
far it is, stops it when it is time, and makes the ledger from the tape that the child leaves in their common folder.
"""
