"""Solves that other libraries differentiate: what they have in common, and a module for each."""
