"""Programs of ranks: each PE has arrays of its own, and messages go from one to another."""
