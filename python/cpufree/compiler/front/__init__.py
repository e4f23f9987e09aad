"""From the tree of a Python function to the intermediate representation."""
