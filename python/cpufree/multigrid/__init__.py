"""Multigrid as solvers set it up: what it is told of a system, levels made elsewhere, its gain."""
