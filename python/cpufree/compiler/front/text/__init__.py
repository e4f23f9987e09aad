"""The text of functions: found, read, and changed to one return."""
