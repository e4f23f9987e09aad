"""Serves a built-in contender of the stencils: python -m cpufree.bench.stencil.worker NAME."""

from __future__ import annotations

import sys

from ..worker import main
from .contenders import make

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], make))
