"""For GPUs: an update that only overtakes its readers writes into an array of its own.

`v[...] = f(v)` cannot go with stages before it that read v at other points: another thread may not
have read yet. Written into a new array it can, and v takes that array's storage afterwards
(copies.py). One sweep and one barrier less, for memory of one more array.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.passes.copies import Body, late_swaps, replaced, swap_copies
from cpufree.compiler.passes.points import goes_with
from cpufree.compiler.passes.rows import Work


def buffer_updates(program: ir.Program, kept: Collection[str]) -> ir.Program:
    """Return a program in which updates go with the readers that they overtake.

    Parameters
    ----------
    program : ir.Program
        After align_locals.
    kept : collection of str
        Fields that the caller gets.
    """
    program = late_swaps(swap_copies(program, kept))
    tried: set[tuple[str, int]] = set()
    while True:
        changed = _in_block(program, program.body, kept, tried)
        if changed is None:
            return late_swaps(program)
        program = changed


def _in_block(
    program: ir.Program, body: Body, kept: Collection[str], tried: set[tuple[str, int]]
) -> ir.Program | None:
    group: list[Work] = []
    for at, s in enumerate(body):
        for block in ir.blocks(s):
            found = _in_block(program, block, kept, tried)
            if found is not None:
                return found
        if not isinstance(s, ir.Assign | ir.Reduce):
            group = []
            continue
        if not group or goes_with(program, group, s):
            group.append(s)
            continue
        if isinstance(s, ir.Assign) and (s.field, s.line) not in tried:
            tried.add((s.field, s.line))
            found = _buffered(program, body, at, group, kept)
            if found is not None:
                return found
        group = [s]
    return None


def _buffered(
    program: ir.Program, body: Body, at: int, group: list[Work], kept: Collection[str]
) -> ir.Program | None:
    """Return the program whose statement `at` writes into a new array; None: that is no help."""
    s = body[at]
    assert isinstance(s, ir.Assign)
    u = program.field(s.field)
    names = {f.name for f in program.fields}
    name = next(n for k in range(1, len(names) + 2) if (n := f"next_{u.name}_{k}") not in names)
    fields = (*program.fields, replace(u, name=name, role="temporary"))
    update = replace(s, field=name)
    wider = replace(program, fields=fields)
    if not goes_with(wider, group, update):
        return None
    axes = tuple(span.axis(k) for k, span in enumerate(s.box))
    copy = replace(s, value=ir.Read(name, axes, u.type))
    made = replace(
        wider, body=replaced(program.body, body, (*body[:at], update, copy, *body[at + 1 :]))
    )
    made = swap_copies(made, kept)
    is_swapped = any(isinstance(p, ir.Permute) and name in p.fields for p in ir.walk(made.body))
    return made if is_swapped else None
