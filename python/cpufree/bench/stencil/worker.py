"""Serves a built-in contender of the stencils: python -m cpufree.bench.stencil.worker NAME."""

from __future__ import annotations

import sys

from cpufree.bench.core.protocol import main
from cpufree.bench.stencil.contenders import make

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], make))
