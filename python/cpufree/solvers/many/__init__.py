"""Many small systems at once, each by one core or by one block of a GPU: `solve_many`."""
