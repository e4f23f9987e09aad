"""Benchmarks: cpufree's persistent kernels next to host-driven baselines and other solvers.

A *contender* is a process that loads a problem and solves it on request (`worker`). The harness
starts them, interleaves their solves, and writes one line a measurement; docs/benchmarking.md.
"""
