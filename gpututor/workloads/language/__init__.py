"""Transformers for language: BERT, GPT-2 and its relatives, Llama, translation; each as the measured code ran it.

The same sums can be many kernels or few: what a step takes hangs on how attention, masks, norms and optimizers were
written at the time. So a network here may have several styles, each with the code that it follows.
"""
