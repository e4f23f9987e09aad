"""Updates of one array that follow one another become one: same bits, fewer sweeps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_on_cpu
import numpy as np
import pytest
from grid_programs import assert_same, copies
from interpreted import checked
from multigrid_programs import CASES, v_cycles

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.grid import grid_passes, swept_groups
from cpufree.compiler.passes import compose
from cpufree.compiler.passes.barriers import check_barriers
from cpufree.errors import EngineError


@cpufree.program
def smoothed(u: Any, f: Any, n: int) -> None:
    for _ in range(n):
        for _ in range(2):
            u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + f[1:-1, :-2])


@cpufree.program
def from_zeros(u: Any, f: Any, n: int) -> None:
    for _ in range(n):
        u[...] = 0.0
        for _ in range(5):
            u[1:-1] = 0.5 * (u[2:] + u[:-2] + f[1:-1])


@cpufree.program
def corrected(u: Any, f: Any, n: int) -> None:
    for _ in range(n):
        u[::2] += 0.5 * f[::2]
        u[1::2] += 0.25 * (f[2::2] + f[:-2:2])
        u[1:-1] = 0.5 * (u[2:] + u[:-2])


@cpufree.program
def seen_between(u: Any, f: Any, n: int) -> None:
    """What the first update leaves is read by another statement, too."""
    for _ in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        f += u
        u[1:-1] = 0.5 * (u[2:] + u[:-2])


@cpufree.program
def by_the_turn(u: Any, f: Any, n: int) -> None:
    """Turns differ."""
    for _ in range(n):
        for k in range(2):
            u[1:-1] = 0.5 * (u[2:] + k * u[:-2])
        f += u


@cpufree.program
def around(u: Any, f: Any, n: int) -> None:
    """What is read goes around."""
    for _ in range(n):
        u[...] = np.roll(u, 1, axis=0) + f
        u[...] = np.roll(u, 1, axis=0) - f


@cpufree.program
def long_ones(u: Any, f: Any, n: int) -> None:
    """To compute the first update again costs more than its loads and stores."""
    for _ in range(n):
        u[1:-1] = np.exp(np.exp(-u[2:] * u[2:]) / (1 + u[:-2] * u[:-2])) + f[1:-1]
        u[1:-1] = np.exp(np.exp(-u[2:] * u[2:]) / (1 + u[:-2] * u[:-2])) + f[1:-1]


def _arrays(rows: int = 13, columns: int = 7) -> tuple[Any, ...]:
    numbers = np.random.default_rng(3)
    return numbers.standard_normal((rows, columns)), numbers.standard_normal((rows, columns)), 3


def _updates(made: ir.Program) -> int:
    """Return how many stages read values of the array that they replace, or of its storage."""
    return sum(isinstance(s, ir.Assign) and _is_update(s) for s in ir.walk(made.body))


def _is_update(s: ir.Assign) -> bool:
    return any(True for _ in ir.reads(s.value)) and not isinstance(s.value, ir.Read)


def _checked(program: Any, arguments: tuple[Any, ...]) -> ir.Program:
    return checked(program, arguments, swept_groups)


@pytest.mark.parametrize(
    ("program", "updates"), [(smoothed, 1), (from_zeros, 2), (corrected, 2)], ids=lambda p: str(p)
)
def test_updates_that_follow_one_another_are_one(program: Any, updates: int) -> None:
    assert _updates(_checked(program, _arrays())) == updates


@pytest.mark.parametrize(
    ("program", "updates"),
    [(seen_between, 3), (by_the_turn, 2), (around, 2), (long_ones, 2)],
    ids=lambda p: str(p),
)
def test_other_updates_stay(program: Any, updates: int) -> None:
    assert _updates(_checked(program, _arrays())) == updates


@pytest.mark.parametrize("program", [smoothed, from_zeros, corrected], ids=lambda p: p.name)
@pytest.mark.parametrize("pes", [1, 3])
def test_kernels_of_one_update_give_the_bits_of_plain_python(program: Any, pes: int) -> None:
    arguments = _arrays(37, 70)
    plain, ours = copies(arguments), copies(arguments)
    program.function(*plain)
    grid_on_cpu.call(program, ours, pes, 2)
    assert_same(program.name, plain, ours)


def test_v_cycles_sweep_each_grid_three_times() -> None:
    u = np.zeros((65, 65))
    made = grid_passes(v_cycles.lower(u, u.copy(), 1.0, 4, 2), ())
    cycle = next(s for s in made.body if isinstance(s, ir.For))
    assert sum(isinstance(s, ir.Barrier) for s in ir.walk(cycle.body)) == 3 * 3 + 1


def test_coarse_grids_of_v_cycles_are_done_by_one_block() -> None:
    u = np.zeros((129, 129))
    lowered = v_cycles.lower(u, u.copy(), 1.0, 5, 2)
    of_several = grid_passes(lowered, (), pes=2)
    assert not any(isinstance(s, ir.Group) and s.by_one for s in ir.walk(of_several.body))
    made = grid_passes(lowered, (), pes=1)
    cycle = next(s for s in made.body if isinstance(s, ir.For))
    barriers = [s for s in ir.walk(cycle.body) if isinstance(s, ir.Barrier)]
    # Before each sweep of the grids of 129, 65 and 33 points a side, and to the first of one block.
    assert sum(not b.of_block for b in barriers) == 9
    assert sum(b.of_block for b in barriers) == 4
    found = [k for k, s in enumerate(ir.walk(made.body)) if isinstance(s, ir.Barrier)]
    for number in range(len(found)):
        with pytest.raises(EngineError, match="missing"):
            check_barriers(replace(made, body=_without(made.body, iter(range(99)), number)))


def _without(body: Any, numbers: Iterator[int], left_out: int) -> Any:
    """Return statements without one barrier, by its number."""
    kept = []
    for s in body:
        if isinstance(s, ir.Barrier) and next(numbers) == left_out:
            continue
        kept.append(ir.with_blocks(s, lambda inner: _without(inner, numbers, left_out)))
    return tuple(kept)


@pytest.mark.parametrize("name", CASES)
def test_programs_on_several_grids_keep_their_bits(name: str) -> None:
    _checked(*CASES[name])


@pytest.mark.parametrize("seed", range(60))
def test_random_chains_keep_their_bits(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = random.Random(seed)
    if numbers.random() < 0.7:
        monkeypatch.setattr(compose, "_pays", lambda chain, made: True)
    lines = ["import cpufree", "@cpufree.program", "def p(u, f, n):", "    for _ in range(n):"]
    for _ in range(numbers.randint(2, 5)):
        turns = numbers.choice([0, 0, 1, 2, 3, 4, 7])
        lines += [f"        for _ in range({turns}):"] if turns else []
        lines.append(("    " if turns else "") + "        " + _update(numbers))
    path = tmp_path / "chain.py"
    path.write_text("\n".join(lines) + "\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), names)
    _checked(names["p"], _arrays(16, 11))


def _update(numbers: random.Random) -> str:
    """Return a statement that updates u, of 16 x 11 points."""
    kind = numbers.randrange(6)
    if kind == 0:
        return f"u[{numbers.choice(['...', '1:-1', '::2', '3:12, 2:9'])}] = {numbers.random():.3f}"
    if kind == 1:
        return "f += 0.5 * u" if numbers.random() < 0.3 else "u += 0.25 * f"
    low, left = numbers.randint(1, 4), numbers.randint(1, 3)
    step, wide = numbers.choice([(1, 1), (1, 1), (2, 1), (2, 2), (1, 2), (3, 1)])
    rows, columns = 16 - numbers.randint(1, 3), 11 - numbers.randint(1, 2)

    def part(name: str) -> str:
        d, e = numbers.choice([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, -1)])
        return f"{name}[{low + d}:{rows + d}:{step}, {left + e}:{columns + e}:{wide}]"

    terms = " + ".join(part(numbers.choice("uuf")) for _ in range(numbers.randint(1, 4)))
    return f"u[{low}:{rows}:{step}, {left}:{columns}:{wide}] = 0.3 * ({terms})"
