"""Tables of pages, from records of declared benchmarks and of those before them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paths import ROOT

from tools.results import dace, other_tables, programs, records

NAMES = ("cpu-2026-11-21.json", "build-2026-11-28.json", "kernel-times-2026-11-29.json",
         "programs-cpu-2026-11-26.jsonl", "programs-4x-2026-11-26.jsonl",
         "dace-4x-2026-11-26.jsonl", "preconditioners-1x-2026-11-25.json",
         "expected-iterations-2026-11-26.json", "time-2x-2026-11-26-later/suite.jsonl")  # fmt: skip


def given(monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, object]], name: str) -> str:
    """Have a record hold lines; return its name."""
    head = {"kind": "header", "schema": 1, "machine": {"gpus": "2 × NVIDIA H200"}}
    monkeypatch.setattr(records, "json_lines", lambda _: [head, *lines])
    return name


@pytest.mark.parametrize("name", NAMES)
def test_an_older_record_is_read_as_that_of_a_declaration(name: str) -> None:
    found = records.medians(name)
    assert found
    assert all(seconds > 0 for of in found.values() for seconds in of.values())


def test_the_tables_of_programs_are_those_of_a_new_record_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[dict[str, object]] = []
    for pes, seconds in ((1, 3e-6), (2, 2e-6)):
        of = {"case": f"life on {pes}", "program": "life", "n": "1024", "pes": str(pes)}
        of["type"] = "float64"
        lines.append({"kind": "problem", **of, "points": 1024})
        for name, factor in (("cpufree", 1), ("host-driven", 2), ("jax", 4))[: 4 - pes]:
            times = {"seconds": factor * seconds, "kernel": factor * seconds, "on_chip": True}
            lines.append({"kind": "measurement", **of, "contender": name, "round": 0, **times})
    text = programs.text_of(given(monkeypatch, lines, "programs-new.jsonl"))
    assert "| life 1024² | 3 \\* | 6 | 2 \\* | 4 |  | 12 | 4.00 |" in text
    assert "Host-driven over ours, 2 GPUs, 1024² and 128³: 2.00" in text


def test_the_table_of_ranks_is_that_of_a_new_record_too(monkeypatch: pytest.MonkeyPatch) -> None:
    of = {"case": "jacobi_2d-2-512x1024", "contender": "ours"}
    lines: list[dict[str, object]] = [
        {"kind": "problem", **of, "places": [0, 1]},
        {"kind": "measurement", **of, "round": 0, "seconds": 1.42e-5},
    ]
    made = dace.programs(given(monkeypatch, lines, "dace-new.jsonl"))
    assert made.splitlines()[2] == "| jacobi_2d, 512 × 1024 each | 2 on 2 | 14.2 |"


def test_ratios_to_scipy_are_those_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, object]] = [
        {"kind": "measurement", "case": "a", "contender": name, "round": k, "seconds": seconds}
        for name, times in (("prcg", (1.0, 3.0)), ("scipy", (4.0, 6.0)))
        for k, seconds in enumerate(times)
    ]
    name = given(monkeypatch, lines, "cpu-new.jsonl")
    assert other_tables.over_scipy(name, "prcg") == {"a": [0.25, 0.5]}


def test_pages_quote_multigrid_on_a_gpu_as_it_is_recorded() -> None:
    def rows_of(name: str) -> Any:
        return json.loads((ROOT / f"bench/results/{name}.json").read_text())["rows"]

    later = rows_of("amg-1x-2026-11-29-later")
    both = {row["pc"]: row for row in later if row["system"].startswith("poisson3d?nx=128")}
    amg, jacobi = both["amg"], both["jacobi"]
    methods = (ROOT / "docs/solving/methods.md").read_text()
    told = f"takes {amg['iterations']} iterations in {1e3 * amg['kernel']:.1f} ms, for "
    assert told + f"{1e3 * jacobi['kernel']:.0f} ms with Jacobi" in methods
    setups = f"{amg['setup']:.2f} s instead of {jacobi['setup']:.2f} s"
    assert setups in " ".join(methods.split())
    cube = [row for row in rows_of("amg-1x-2026-11-29") if row["system"] == "poisson3d 128^3"]
    jacobi = next(row for row in cube if row["pc"] == "jacobi")
    amg = next(row for row in cube if row.get("levels") == "gpu")
    design = (ROOT / "docs/design/multigrid.md").read_text()
    each = 1e3 * amg["kernel"] / amg["iterations"]
    assert f"takes {amg['iterations']} iterations of {each:.2f} ms to 1e-8" in design
    assert f"{amg['kernel'] / jacobi['kernel']:.0%}".replace("%", " %") + " of the time" in design
