"""What a launch costs on the reader's own machine, measured in under a minute.

Without a GPU: operators and the Python between them, which cost the host alike with and without one (`operators.py`,
`on_cpu.py`). With one: launches, copies and matrix products on it (`on_gpu.py`). `whole.py` puts both together.
"""
