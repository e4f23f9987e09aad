"""`cpufree bench time`: wall time from a matrix to its answer, of cpufree and of others."""
