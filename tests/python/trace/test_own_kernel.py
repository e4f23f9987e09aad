"""The tracer for kernels of one's own: the example, compiled as its page says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import cpufree
from cpufree.trace.timeline import Timeline

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_example_is_traced(tmp_path: Path) -> None:
    sources = [
        ROOT / "examples/08_own_kernel/on_threads.cpp",
        *sorted((ROOT / "cpufree/engines/cpu_threads").glob("*.cpp")),
        *sorted((ROOT / "cpufree/base").glob("*.cpp")),
    ]
    words = ["c++", "-std=c++20", "-O1", f"-I{ROOT}", *sources, "-lpthread", "-ldl"]
    subprocess.run([*words, "-o", tmp_path / "own"], check=True, timeout=600)
    subprocess.run([tmp_path / "own", "--trace", tmp_path / "own.trace"], check=True, timeout=120)
    trace = cpufree.trace.load(tmp_path / "own.trace")
    # 1000 rounds of 256 doubles to and fro.
    assert trace.bytes.tolist() == [[0, 1000 * 256 * 8], [1000 * 256 * 8, 0]]
    line = Timeline(trace)
    assert len(line.waits.begin) > 0
    assert (line.waits.sent >= 0).all()
