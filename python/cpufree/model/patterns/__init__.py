"""Patterns of messages among all PEs: measured, predicted, and held against one another."""
