"""The lab: experiments run in processes of their own, so that a page never freezes and never dies with them.

`pool.the_lab().run("gpututor.jobs.some:thing", {...})` is the whole of it. Nothing here imports torch
but `worker`, which is the other process.
"""
