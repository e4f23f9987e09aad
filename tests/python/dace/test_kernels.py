"""Kernels of NPBench's list through DaCe's front end, and the page that says which run."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import dace_algebra_cases
import dace_cases
import dace_kernels
import grid_on_cpu
import nvrtc
from dace_check import plain
from paths import ROOT

import cpufree.dace
from cpufree.errors import InvalidInputError, ProgramError

RUNS = {**dace_kernels.RUNS, **dace_algebra_cases.RUNS}
REFUSED = dace_algebra_cases.REFUSED
ROUNDED = {"arc_distance", "go_fast", "softmax (all points)", *dace_algebra_cases.RUNS}
"""With functions of the C library, whose last bit may differ, or sums in another order."""
ON_ONE = {*dace_algebra_cases.RUNS, "seidel_2d", "floyd_warshall", "go_fast"}
"""Run on one PE: of most the rows are not divided."""
# Each takes DaCe a second or two to parse, and a C++ compiler one more.
QUICK = {*dace_kernels.RUNS, "gemm", "correlation", "softmax", "conv2d",
         "nbody", "lu", "azimint_hist", "mandelbrot2"}  # fmt: skip


def marked(names: Any) -> list[Any]:
    return [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in names]


@pytest.mark.parametrize("name", marked(RUNS))
@pytest.mark.few(6)
def test_kernel_gives_what_plain_numpy_gives(name: str) -> None:
    program, arguments = RUNS[name]
    wanted, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    plain(program, wanted)
    compiled = cpufree.dace.compile(program)
    compiled.run(ours, engine="cpu_threads", pes=1 if name in ON_ONE else 2)
    assert compiled.pes == (1 if name in ON_ONE else 2)
    for mine, other in zip(ours, wanted, strict=True):
        if name in ROUNDED:
            np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)
        else:
            np.testing.assert_array_equal(mine, other)
        assert np.all(np.isfinite(np.asarray(other, float))), "no test of values"
    changed = [not np.array_equal(a, b) for a, b in zip(arguments, ours, strict=True)]
    assert any(changed), "the kernel does nothing"


@pytest.mark.parametrize("pes", [1, 2])
def test_kernels_for_gpus_read_elements_at_all_their_indices(pes: int) -> None:
    random = np.random.default_rng(1).standard_normal
    arguments = random((6, 5)), random((6, 5)), random((6, 5, 3)), 2
    wanted, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    plain(dace_kernels.by_elements, wanted)
    grid_on_cpu.call(cpufree.dace.compile(dace_kernels.by_elements), ours, pes, 2)
    np.testing.assert_array_equal(ours[0], wanted[0])


@pytest.mark.parametrize("name", ["correlation", "conv2d"])
def test_kernels_of_many_blocks_fold_alike(name: str) -> None:
    program, arguments = RUNS[name]
    wanted, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    plain(program, wanted)
    compiled = cpufree.dace.compile(program)
    grid_on_cpu.call(compiled, ours, 1, 3)
    for mine, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)
    if nvrtc.find():
        _, _, kernel = grid_on_cpu.kernel_for(compiled, copy.deepcopy(arguments), 1)
        assert len(nvrtc.compile_text(kernel.text.on_gpu())) > 1000


@pytest.mark.parametrize("name", marked(REFUSED))
def test_kernel_is_refused_with_its_reason(name: str) -> None:
    program, arguments, message = REFUSED[name]
    with pytest.raises((ProgramError, InvalidInputError), match=message) as caught:
        cpufree.dace.compile(program).run(copy.deepcopy(arguments))
    if isinstance(caught.value, ProgramError):
        assert caught.value.line > 0 and program.f.__code__.co_filename in str(caught.value)


@pytest.mark.parametrize("name", ["gemm", "softmax"])
def test_saved_kernels_are_those_of_the_front_end(name: str) -> None:
    made = dace_cases.load_kernel(name)
    assert made == dace_cases.lowered_kernel(name), "python tests/python/support/dace/dace_cases.py"


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
