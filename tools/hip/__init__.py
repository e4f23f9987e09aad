"""Kernels for AMD's GPUs: compiled, and their machine code checked, on machines without one."""
