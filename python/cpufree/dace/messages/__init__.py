"""Communication of ranks: events, how they pair, signals, and symmetric storage."""
