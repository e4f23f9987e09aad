"""`cpufree bench triggered`: messages, Jacobi iterations and all-reduces by triggered puts."""
