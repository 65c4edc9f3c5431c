"""Single layers, recurrent kernels and optimizers, as kernel benchmarks time them."""
