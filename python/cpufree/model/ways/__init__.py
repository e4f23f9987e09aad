"""Ways in which two PEs can exchange data, each a class with the verbs open, times and close."""
