"""Loops and branches, and what names stand for where ways meet."""
