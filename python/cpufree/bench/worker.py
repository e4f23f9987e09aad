"""Serves a built-in contender of conjugate gradients: python -m cpufree.bench.worker NAME.

Programs elsewhere call `serve` with a contender of their own (docs/benchmarking.md).
"""

from __future__ import annotations

import sys

from cpufree.bench.core.protocol import main, serve

__all__ = ["serve"]

if __name__ == "__main__":
    from cpufree.bench.contenders.registry import make  # programs that serve need none of it

    sys.exit(main(sys.argv[1:], make))
