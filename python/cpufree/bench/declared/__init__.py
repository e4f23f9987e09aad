"""Benchmarks that scripts declare: axes and contenders. The harness does everything else."""

from cpufree.bench.declared.declaration import Bench, Call, Case

__all__ = ["Bench", "Call", "Case"]
