"""Passes: functions from programs to programs, each with one purpose."""

from cpufree.compiler.passes.check import check_ghosts
from cpufree.compiler.passes.fusion import fuse
from cpufree.compiler.passes.halos import exchange
from cpufree.compiler.passes.temporaries import add_temporaries

__all__ = ["add_temporaries", "check_ghosts", "exchange", "fuse"]
