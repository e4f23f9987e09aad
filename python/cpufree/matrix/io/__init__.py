"""File formats: Matrix Market and vectors."""
