"""Scripts of the house: checks, builds, pages made from records."""
