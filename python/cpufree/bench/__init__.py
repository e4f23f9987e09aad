"""Benchmarks: cpufree's persistent kernels next to host-driven baselines and other solvers."""
