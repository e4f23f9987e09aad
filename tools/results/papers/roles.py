"""Who initiates, triggers and controls the communication of contenders (docs/benchmarking.md)."""

from __future__ import annotations

from cpufree.bench.contenders.roles import SOLVERS, STENCILS, Roles
from tools.results.page_tables import markdown


def table() -> str:
    """Return contenders of both benchmarks by who does what."""
    found: dict[Roles, tuple[list[str], list[str]]] = {}
    for column, roles in enumerate((SOLVERS, STENCILS)):
        for name, one in roles.items():
            found.setdefault(one, ([], []))[column].append(f"`{name}`")
    rows = [
        (
            *(word or "–" for word in (one.initiated, one.triggered, one.controlled)),
            *(", ".join(names) or "–" for names in both),
        )
        for one, both in found.items()
    ]
    return markdown(("initiated", "triggered", "controlled", "`bench cg`", "`bench stencil`"), rows)
