"""What lowered expressions are made of: points, operators, ranges, conditions on integers."""
