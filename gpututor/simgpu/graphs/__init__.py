"""CUDA graphs: captured once, launched as one."""
