"""Who owns which rows, and in which order each PE keeps them."""
