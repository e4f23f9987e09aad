"""Emits the kernels of a generated program for GPUs, in every way that there is, without a GPU."""

from __future__ import annotations

import warnings
from pathlib import Path

from any_program import Case, load
from any_program_oracle import path_of

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.grid import (
    chosen_kernel,
    grid_groups,
    returned_fields,
    round_kernel,
    stream_kernel,
    swept_groups,
    tile_kernel,
)
from cpufree.compiler.layout import most_pes
from cpufree.compiler.passes.tiles import NotOnChip
from cpufree.errors import InvalidInputError

MULTIPROCESSORS = 132


def emit_all(case: Case, pes: int, folder: Path) -> int:
    """Return how many kernels of a program are emitted; 0 where it is refused."""
    path = path_of(case, folder)
    path.write_text(case.text)
    try:
        load(case.text, path)
    except Exception:  # compare() says whether that is right
        path.unlink()
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = load(case.text, path)
            given = Arguments.of(names["p"].signature, "p", names["arguments"](), {})
            lowered = names["p"]._lowered(given)
            given.check(lowered.program)
            kept = returned_fields(lowered.result)
            groups = grid_groups(lowered.program, kept)
            swept = swept_groups(lowered.program, kept)
    except InvalidInputError:
        return 0
    finally:
        path.unlink()
    pes = most_pes(groups, pes)
    chosen_kernel(groups, min(pes, most_pes(swept, pes)), kept, MULTIPROCESSORS, swept=swept)
    made = 1
    for make in (tile_kernel, round_kernel, stream_kernel):
        try:
            make(groups, pes, kept, MULTIPROCESSORS)
        except NotOnChip:
            continue
        made += 1
    return made
