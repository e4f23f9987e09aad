"""bench/machine/traffic.py: what is read of the profiler, and what is predicted."""

from __future__ import annotations

from types import ModuleType

import pytest
from bench_script import load

HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """Return the script as a module."""
    return load("machine/traffic")


def printed(bench: ModuleType, kernels: int = 1) -> str:
    """Return what ncu prints for a number of kernels, with what a program says around it."""
    lines = ["==PROF== Connected to process 1", '{"iterations": 20}', HEAD]
    for kernel in range(kernels):
        for value, metric in enumerate(bench.METRICS.values(), 1):
            lines.append(f'"{kernel}","solve","{metric}","byte","{value},000,000"')
    return "\n".join(lines)


def test_counts_are_read_from_what_the_profiler_prints(bench: ModuleType) -> None:
    counts = bench.parse_counts(printed(bench))
    assert counts == {"read": 1e6, "written": 2e6, "second_cache": 3e6}


def test_counts_of_several_kernels_are_refused(bench: ModuleType) -> None:
    with pytest.raises(ValueError, match="more than one kernel"):
        bench.parse_counts(printed(bench, kernels=2))


def test_a_profiler_that_counted_nothing_is_quoted(bench: ModuleType) -> None:
    with pytest.raises(ValueError, match="No kernels were profiled"):
        bench.parse_counts("==WARNING== No kernels were profiled.")


@pytest.mark.parametrize(
    ("resident", "matrix", "passes"),
    [(0, False, 10), (1, False, 7), (3, False, 3), (5, False, 3), (5, True, 3)],
)
def test_what_stays_on_chip_is_not_predicted(
    bench: ModuleType, resident: int, matrix: bool, passes: int
) -> None:
    plan = {"resident_vectors": resident, "resident_matrix": matrix, "matrix_bytes": 5000.0}
    expected = 8.0 * 100 * passes + (0 if matrix else 5000)
    assert bench.predicted_bytes(100, plan, "cg") == expected
