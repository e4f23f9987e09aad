"""What all benchmarks measure beside: the speed of the memory, and what others took."""

from __future__ import annotations

import shutil

import pytest

from cpufree.bench.core import machine, triad, work

pytestmark = pytest.mark.cpu_only  # what is measured here is the CPU engine
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")


def test_bytes_of_an_iteration_are_those_of_csr_and_vectors() -> None:
    count = work.count_bytes(10, 28, 300.0, "prcg")
    assert count == {"vectors": 960.0, "csr": 12 * 28 + 4 * 10 + 960.0, "format": 1260.0}
    assert work.count_bytes(10, 28, 300.0, "pipecg")["vectors"] == 19 * 80.0


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
def test_triad_computes_all_elements(threads: int) -> None:
    with triad.Triad(10_001, threads) as made:
        assert made.wrong() == 10_001  # nothing has run yet
        assert made.run(2) > 0
        assert made.wrong() == 0
        assert made.bytes_per_pass == 240_024


def test_triad_arrays_outgrow_the_caches() -> None:
    elements = triad.array_elements
    assert elements(0) * 8 == 160_000_000
    assert elements(256 * 2**20) * 8 == 2**30


def test_missing_compiler_is_named() -> None:
    with pytest.raises(triad.TriadError, match="'no-such-c' was not found"):
        triad.Triad(100, 1, "no-such-c")


def test_last_level_cache_counts_all_its_instances() -> None:
    listed = [{"level": 2, "bytes": 100, "instances": 8}, {"level": 3, "bytes": 7, "instances": 2}]
    assert machine.last_level_bytes(listed) == 14
    assert machine.last_level_bytes([]) == 0


def test_processor_time_of_others_is_told_from_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    hertz = machine.os.sysconf("SC_CLK_TCK")

    def at(stat: list[int], own: float) -> None:
        line = "cpu  " + " ".join(str(seconds * hertz) for seconds in stat) + " 0 0\ncpu0 1\n"
        monkeypatch.setattr(machine, "read_text", lambda path: line)
        times = machine.os.times_result((own, 0.0, 0.0, 0.0, 0.0))
        monkeypatch.setattr(machine.os, "times", lambda: times)

    at([10, 0, 5, 100, 0, 0, 0, 0], own=2.0)
    use = machine.CpuUse()
    # 10 more seconds in all: 6 busy, of which 1 was stolen by the hypervisor and 4 are our own.
    at([14, 0, 6, 103, 1, 0, 0, 1], own=6.0)
    assert use.others() == pytest.approx(0.2)
