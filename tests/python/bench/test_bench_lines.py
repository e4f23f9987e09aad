"""The typed lines of a file of measurements: old records are read, damaged ones are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT, SUPPORT

from cpufree.bench.cg.results import Results
from cpufree.bench.core import lines as kinds
from cpufree.bench.core import records
from cpufree.bench.core.lines import Lines
from cpufree.bench.stencil.results import StencilResults
from cpufree.errors import FileFormatError

FILE = SUPPORT / "bench_synthetic.jsonl"


def old_records() -> list[Path]:
    """Return the records of `cpufree bench` in the repository."""
    found = sorted((ROOT / "bench/results").rglob("*.jsonl"))
    return [file for file in found if b'"schema"' in file.read_bytes()[:400]]


def benchmark_of(file: Path) -> str:
    """Return which benchmark a file is of."""
    with file.open() as text:
        return str(json.loads(text.readline())["benchmark"])


@pytest.mark.parametrize("file", old_records(), ids=lambda file: file.stem)
def test_old_records_are_read(file: Path) -> None:
    benchmark = benchmark_of(file)
    readers = {"cg": Results, "stencil": StencilResults}
    if benchmark not in readers:
        pytest.skip(f"of {benchmark}")
    results = readers[benchmark]([file])
    raw, _ = records.read(file)
    typed = Lines.of(raw, file)
    measured = sum(line["kind"] == "measurement" for line in raw)
    assert len(typed.measurements) == measured
    assert sum(len(series.lines) for series in results.series.values()) == measured
    assert typed.header is raw[0]


def test_lines_are_sorted_by_kind_in_the_order_of_the_file() -> None:
    raw, _ = records.read(FILE)
    typed = Lines.of(raw, FILE)
    for kind, place in (
        ("rate", typed.rates),
        ("problem", typed.problems),
        ("load", typed.loads),
        ("check", typed.checks),
        ("measurement", typed.measurements),
        ("end", typed.ends),
    ):
        assert place == [line for line in raw if line["kind"] == kind], kind
        assert place, kind


def test_a_kind_that_is_not_known_is_left_out() -> None:
    raw, _ = records.read(FILE)
    more = [*raw, {"kind": "weather", "rain": True}]
    assert Lines.of(more, FILE) == Lines.of(raw, FILE)


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("header", "machine"),
        ("measurement", "seconds"),
        ("measurement", "case"),
        ("load", "facts"),
        ("check", "contender"),
    ],
)
def test_a_line_without_what_reports_need_is_named(tmp_path: Path, kind: str, lost: str) -> None:
    raw, _ = records.read(FILE)
    number = next(k for k, line in enumerate(raw) if line["kind"] == kind)
    damaged: list[dict[str, Any]] = [dict(line) for line in raw]
    del damaged[number][lost]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in damaged))
    with pytest.raises(FileFormatError, match=f"line {number + 1}, a {kind}, has no {lost}"):
        Results([file])


@pytest.mark.parametrize("kind", sorted(kinds._NEEDED))
def test_what_reports_need_is_among_the_keys_of_its_kind(kind: str) -> None:
    homes = {name.lower(): home for name, home in vars(kinds).items() if isinstance(home, type)}
    home = homes[{"iterations": "limit"}.get(kind, kind)]
    assert set(kinds._NEEDED[kind]) <= set(home.__annotations__)
