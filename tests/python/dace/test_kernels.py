"""Kernels of NPBench's list through DaCe's front end, and the page that says which run."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import dace_kernels
from dace_kernels import REFUSED, RUNS
from paths import ROOT

import cpufree.dace
from cpufree.errors import ProgramError

ROUNDED = ("arc_distance", "softmax (all points)")
"""With functions of the C library, whose last bit may differ, or sums over all points."""


def plain(program: Any, arguments: tuple[Any, ...]) -> None:
    """Call the function of a program, where N and M are the sizes of its first array."""
    names = program.f.__globals__
    before = {n: names[n] for n in "NM"}
    first = next(a for a in arguments if isinstance(a, np.ndarray))
    if first.ndim == 2:
        names.update(N=first.shape[0], M=first.shape[1])
    try:
        program.f(*arguments)
    finally:
        names.update(before)


@pytest.mark.parametrize("name", RUNS)
def test_kernel_gives_what_plain_numpy_gives(name: str) -> None:
    program, arguments = RUNS[name]
    wanted, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    plain(program, wanted)
    compiled = cpufree.dace.compile(program)
    compiled.run(ours, engine="cpu_threads", pes=2)
    assert compiled.pes == 2
    for mine, other, start in zip(ours, wanted, arguments, strict=True):
        if name in ROUNDED:
            np.testing.assert_allclose(mine, other, rtol=1e-14)
        else:
            np.testing.assert_array_equal(mine, other)
        assert np.all(np.isfinite(np.asarray(other, float))), "no test of values"
        del start
    changed = [not np.array_equal(a, b) for a, b in zip(arguments, ours, strict=True)]
    assert any(changed), "the kernel does nothing"


@pytest.mark.parametrize("name", REFUSED)
def test_kernel_is_refused_with_its_reason(name: str) -> None:
    program, arguments, message = REFUSED[name]
    with pytest.raises(ProgramError, match=message) as caught:
        cpufree.dace.compile(program).run(copy.deepcopy(arguments))
    assert caught.value.line > 0 and dace_kernels.__file__ in str(caught.value)


def test_the_page_names_all_of_them() -> None:
    page = (ROOT / "docs/dace.md").read_text()
    for name in RUNS:
        assert any(name in line and "| run |" in line for line in page.splitlines()), name
    for name in REFUSED:
        assert any(name in line and "| refused |" in line for line in page.splitlines()), name


def test_the_example_of_the_page_runs(tmp_path: Any) -> None:
    text = (ROOT / "docs/dace.md").read_text().split("```python\n")[1].split("```")[0]
    file = tmp_path / "example.py"
    file.write_text(text)
    import importlib.util

    spec = importlib.util.spec_from_file_location("dace_example", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.smooth.pes == 2
    u = np.zeros(202)
    u[50] = 1.0
    for _ in range(1000):
        u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
    found = np.concatenate([part[1:-1] for part in module.parts])
    np.testing.assert_array_equal(found, u[1:-1])
