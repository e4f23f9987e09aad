"""From a matrix, a right-hand side and options to a result: `Solver`, `solve`, `cg`."""
