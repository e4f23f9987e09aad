"""The benchmark of conjugate gradients: problems, measurements, results, tables, plots."""
