"""One server for a class: a key for each learner, a state of their own each, and one line for runs and checks.

`keys` says who may come in, `front` stands before marimo and lets nobody else in, `identity` tells a page who reads it,
`board` shows the instructor who is where, and `serve` is the process that holds it all.
"""
