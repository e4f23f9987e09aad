"""The simulator: programs on 1 to 16 384 PEs of a machine that a file describes.

A program is a graph of operations on CPUs, GPUs, network cards and links (`graph`, `ways`,
`programs`). The core's event engine runs it (`run`); SimGrid can run it, too (`simgrid`).
"""
