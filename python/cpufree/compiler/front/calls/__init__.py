"""Calls in a program: NumPy's functions, methods, other programs."""
