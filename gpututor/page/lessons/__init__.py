"""What one lesson alone reads out of its run and draws: 06 feeding, 07 in_memory, 08 preparing, 09 answers, 10 tiny.

A module here computes sentences and rows from a sweep's points, so that the lesson's file holds its story. What two
lessons need stands in `gpututor.page`.
"""
