"""Benchmarks: contenders that answer requests in processes of their own (`worker`)."""
