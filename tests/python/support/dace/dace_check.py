"""Runs programs of DaCe on several PEs, and their functions as plain Python, on equal arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import cpufree.dace


def plain(program: Any, arguments: tuple[Any, ...]) -> Any:
    """Call the function of a program, whose sizes are those of the arguments."""
    names = program.f.__globals__
    before: dict[str, Any] = {}
    for kind, given in zip(program.f.__annotations__.values(), arguments, strict=True):
        kind = eval(kind, names) if isinstance(kind, str) else kind
        for size, n in zip(getattr(kind, "shape", ()), np.shape(given), strict=False):
            if str(size) in names:
                before.setdefault(str(size), names[str(size)])
                names[str(size)] = n
    try:
        return program.f(*arguments)
    finally:
        names.update(before)


def require_numpys(
    program: Any,
    arguments: tuple[Any, ...],
    pes: Iterable[int] = (1, 2, 3),
    numpys: Callable[..., Any] | None = None,
    rounded: bool = False,
) -> None:
    """Require that a program gives what NumPy gives: in arrays, and what it returns.

    `numpys` is called in place of the program's own function; `rounded`: sums are in another order.
    """
    wanted = copy.deepcopy(arguments)
    expected = numpys(*wanted) if numpys else plain(program, wanted)
    compiled = cpufree.dace.compile(program)
    for n in pes:
        ours = copy.deepcopy(arguments)
        found = compiled.run(ours, engine="cpu_threads", pes=n)
        pairs = [*zip(ours, wanted, strict=True)]
        if expected is not None:
            both = (found, expected)
            pairs += zip(*(x if isinstance(x, tuple) else (x,) for x in both), strict=True)
        for mine, other in pairs:
            if rounded:
                np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)
            else:
                np.testing.assert_array_equal(mine, other)


def grid(seed: int, *shape: int) -> Any:
    """Return an array of numbers around 0."""
    return np.random.default_rng(seed).standard_normal(shape)
