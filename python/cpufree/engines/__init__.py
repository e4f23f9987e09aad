"""Where a system or a grid is solved: the compiled core, GPUs, PEs, and how they are chosen."""
