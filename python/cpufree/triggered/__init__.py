"""Triggered operations: puts and gets that are registered before, and fired by a running kernel.

with cpufree.triggered.Domain(pes=2) as domain: ...
"""

from cpufree.triggered.buffer import Buffer, Place
from cpufree.triggered.domain import Domain, Run
from cpufree.triggered.extension import BACK_ENDS, missing_back_ends
from cpufree.triggered.jacobi import jacobi
from cpufree.triggered.program import BlockProgram, Program
from cpufree.triggered.report import Report, WaitingTag

__all__ = [
    "BACK_ENDS",
    "BlockProgram",
    "Buffer",
    "Domain",
    "Place",
    "Program",
    "Report",
    "Run",
    "WaitingTag",
    "jacobi",
    "missing_back_ends",
]
