"""What the reports of all benchmarks share: collected lines, tables, captions, figures."""
