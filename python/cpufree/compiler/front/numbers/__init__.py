"""Kinds of numbers, and arithmetic of Python's where it is not NumPy's."""
