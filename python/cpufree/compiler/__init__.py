"""The compiler: a NumPy-style program on grids becomes one persistent kernel.

    @cpufree.program
    def heat(u, steps):
        for t in range(steps):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])

A function's text becomes the intermediate representation (`ir`), passes change it, and a back end
runs it; `interpret` is the reference.
"""

from cpufree.compiler.decorated import Program

__all__ = ["Program"]
