"""What runs in a learner's process next to the learner's code, one module a lesson: sets it up, hands back data.

Nothing here judges: the learner's code may change all of it.
"""
