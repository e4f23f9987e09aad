"""Matrices and vectors: what they are, how they are checked, read and written."""
