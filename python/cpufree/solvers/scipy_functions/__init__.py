"""`cg`, `minres` and `bicgstab` with the signatures of scipy.sparse.linalg."""
