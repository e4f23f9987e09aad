"""From a matrix and options to a layout on PEs: checks, the choice of PEs, rows of each."""
