"""`cpufree bench stencil`: Jacobi iterations by cpufree, by host-driven baselines, and by others.

The harness is that of `cpufree bench cg`; here is what is particular: grids, how results are
checked, contenders, tables and plots.
"""
