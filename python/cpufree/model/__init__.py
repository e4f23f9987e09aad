"""The communication model: measured, fitted, validated, and used (docs/model.md)."""
