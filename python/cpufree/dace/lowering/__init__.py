"""From a schedule tree to statements of the representation."""
