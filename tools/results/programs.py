"""Tables of compiled programs on GPUs (docs/compiler.md), from records of bench/programs.py.

Of the first record all tables are made, of others those of more than two GPUs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.core.records import Line
from cpufree.bench.declared.measure import measurements
from tools.results.records import json_lines

Record = dict[str, Any]
CLASSES = {"small": (1024, 128), "least": (256, 64), "large": (4096, 384)}
TEN = (
    *("jacobi_2d", "heat_3d", "fdtd_2d", "shallow_water", "gray_scott", "acoustic", "life"),
    *("points_27", "jacobi_1d", "upwind_in_place"),
)
_HEAD = (
    "| program | one GPU | host-driven | two GPUs | host-driven | CuPy | JAX | over the best |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
)


def read(name: str) -> list[Record]:
    """Return what a record says of each program and size, its header first."""
    head, *lines = json_lines(name)
    if head["kind"] != "header":
        return [head, *lines]  # of the time before there were declarations
    kind = head["machine"]["gpus"].partition(" × ")[2]
    head["gpus"] = [kind] * len(head["configuration"]["gpus"])
    return [head, *_by_program(lines)]


KEYS = {"cpufree": "ours", "host-driven": "hosted", "hand-written": "hand"}


def _by_program(lines: Sequence[Line]) -> Iterator[Record]:
    """Yield the medians of a declared benchmark, all numbers of GPUs of a program together."""
    problems = {line["case"]: line for line in lines if line["kind"] == "problem"}
    found: dict[tuple[str, str, str], Record] = {}
    for case, of in measurements(lines):
        p = problems[case]
        key = p["program"], p["n"], p["type"]
        kind = "jacobi" if p["program"] in ("jacobi", "jacobi_3d") else "program"
        row = {"kind": kind, "program": key[0], "n": p["points"], "type": key[2], "rivals": {}}
        row = found.setdefault(key, {**row, "steps": p["step_count"]})
        for name, measured in of.items():
            times = {
                what: p["step_count"] * statistics.median(line[what] for line in measured)
                for what in ("seconds", "kernel")
                if what in measured[0]
            }
            if name in KEYS:
                row[f"{KEYS[name]}_{p['pes']}"] = {**measured[0], **times}
            else:
                row["rivals"][name] = times["seconds"]
    yield from found.values()


def microseconds(record: Record, key: str, what: str) -> float | None:
    """Return microseconds a step of a measurement; None: there is none."""
    found = record.get(key, {})
    value = found.get("timings", {}).get("kernel") if what == "kernel of a call" else None
    value = found.get(what) if value is None else value
    return None if value is None else 1e6 * value / record["steps"]


def programs_of(found: Iterable[Record], sizes: tuple[int, ...]) -> list[Record]:
    """Return the records of the ten programs at some sizes."""
    return [r for r in found if r["kind"] == "program" and r["n"] in sizes and r["program"] in TEN]


def further_programs(found: Iterable[Record]) -> list[Record]:
    """Return the records of programs beyond the ten, which no mean counts, smallest first."""
    return sorted(
        (r for r in found if r["kind"] == "program" and r["program"] not in TEN),
        key=lambda r: r["n"],
    )


def over_rivals(record: Record) -> float | None:
    """Return the time of the best of the others over ours on one GPU, of whole calls."""
    mine = record.get("ours_1", {}).get("seconds")
    rivals = record.get("rivals")
    return min(rivals.values()) / mine if mine and rivals else None


def over_hosted(record: Record, pes: int) -> float | None:
    """Return the time of the host-driven variant over ours, without the copies of arrays."""
    mine = microseconds(record, f"ours_{pes}", "kernel of a call")
    other = microseconds(record, f"hosted_{pes}", "kernel")
    return other / mine if mine and other else None


def over_hand(record: Record, pes: int) -> float | None:
    """Return our time over that of the hand-written kernel."""
    mine = microseconds(record, f"ours_{pes}", "kernel of a call")
    other = microseconds(record, f"hand_{pes}", "kernel")
    return mine / other if mine and other else None


def table(records: list[Record]) -> Iterator[str]:
    """Yield a table of programs: microseconds a step, of whole calls but the host-driven."""
    yield from _HEAD
    for r in records:
        cells = [f"{r['program']} {_side(r)}"]
        for pes in (1, 2):
            chip = " \\*" if r.get(f"ours_{pes}", {}).get("on_chip") else ""
            cells.append(_cell(microseconds(r, f"ours_{pes}", "seconds")) + chip)
            cells.append(_cell(microseconds(r, f"hosted_{pes}", "kernel")))
        rivals = r.get("rivals", {})
        cupy = [s for name, s in rivals.items() if name.startswith("cupy")]
        jax = [s for name, s in rivals.items() if name == "jax"]
        for seconds in (cupy, jax):
            cells.append(_cell(1e6 * min(seconds) / r["steps"] if seconds else None))
        ratio = over_rivals(r)
        cells.append("" if ratio is None else f"{ratio:.2f}")
        yield f"| {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def more_gpus(found: list[Record], name: str) -> Iterator[str]:
    """Yield tables of runs on more than two GPUs: microseconds a step of the kernels alone."""
    records = [r for sizes in CLASSES.values() for r in programs_of(found, sizes)]
    records += further_programs(found) + [r for r in found if r["kind"] == "jacobi"]
    for pes in (4, 8):
        rows = [r for r in records if over_hosted(r, pes) is not None]
        if not rows:
            continue
        yield f"On {pes} GPUs, µs a step of the kernels alone (`bench/results/{name}`):"
        yield ""
        yield "| program | one GPU | all | hand-written | host-driven | over host-driven |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for r in rows:
            cells = [f"{r['program']} {_side(r)}"]
            for key in ("ours_1", f"ours_{pes}"):
                cells.append(_cell(microseconds(r, key, "kernel of a call")))
            for key in (f"hand_{pes}", f"hosted_{pes}"):
                cells.append(_cell(microseconds(r, key, "kernel")))
            yield f"| {' | '.join(cells)} | {over_hosted(r, pes):.2f} |"
        yield ""


def _side(record: Record) -> str:
    """Return a grid's size, as in 256²."""
    deep = record["n"] in (128, 64, 384) or record["program"].endswith("_3d")
    return f"{record['n']}{'³' if deep else '²'}"


def jacobi_table(found: list[Record]) -> Iterator[str]:
    """Yield a table of Jacobi iterations: microseconds a step of the kernels alone."""
    yield "| | one GPU | host-driven | hand-written | two GPUs | host-driven | hand-written |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for r in found:
        if r["kind"] == "jacobi":
            cells = [f"{r['program']} {r['n']}, {r['type']}"]
            for pes in (1, 2):
                cells.append(_cell(microseconds(r, f"ours_{pes}", "kernel of a call")))
                cells.append(_cell(microseconds(r, f"hosted_{pes}", "kernel")))
                cells.append(_cell(microseconds(r, f"hand_{pes}", "kernel")))
            yield f"| {' | '.join(cells)} |"


def text_of(*names: str) -> str:
    """Return what docs/compiler.md says of records."""
    return "\n".join(_lines({name: read(name) for name in names})).strip()


def _lines(records: dict[str, list[Record]]) -> Iterator[str]:
    (name, found), *others = records.items()
    gpus = found[0].get("gpus", ["?"])
    start = f"On {len(gpus)} {gpus[0]}, µs a step (`bench/results/{name}`): "
    yield start + "whole warm calls, arrays on the GPU;"
    yield "of the host-driven variant the run alone. \\*: values stay on chip, or come there"
    yield "for several steps."
    yield ""
    for sizes in CLASSES.values():
        programs = programs_of(found, sizes)
        if programs:
            yield from table(programs)
            yield ""
    if further := further_programs(found):
        yield "Beyond the ten, and in no mean below (JAX was not measured):"
        yield ""
        yield from table(further)
        yield ""
    if any(r["kind"] == "jacobi" for r in found):
        yield "Jacobi iterations, µs a step of the kernels alone:"
        yield ""
        yield from jacobi_table(found)
        yield ""
    for one, measured in records.items():
        yield from more_gpus(measured, one)
    yield from _goals(found)
    for _, measured in others:
        yield from _hosted_goals(measured, (4, 8))


SIDES = {"small": "1024² and 128³", "least": "256² and 64³", "large": "4096² and 384³"}


def _hosted_goals(found: list[Record], counts: tuple[int, ...]) -> Iterator[str]:
    """Yield what was aimed at of the host-driven variant on so many GPUs, and what is reached."""
    for name, goal in (("small", "2"), ("least", "2"), ("large", "1.0")):
        for pes in counts:
            ratios = [over_hosted(r, pes) for r in programs_of(found, CLASSES[name])]
            what = f"host-driven over ours, {pes} GPU{'s' * (pes > 1)}, {SIDES[name]}"
            yield from _goal(what, ratios, goal if pes > 1 else "1.0 at worst")


def _goals(found: list[Record]) -> Iterator[str]:
    """Yield what was aimed at, and what is reached."""
    for name, goal in (("small", "4"), ("least", "4"), ("large", "1.2, 0.95 at worst")):
        ratios = [over_rivals(r) for r in programs_of(found, CLASSES[name])]
        yield from _goal(f"best of CuPy and JAX over ours, {SIDES[name]}", ratios, goal)
    yield from _hosted_goals(found, (1, 2, 4, 8))
    hand = [
        f"{r['program']} {r['n']} {ratio:.2f} ({pes} GPU{'s' * (pes > 1)})"
        for r in found
        if r["kind"] == "jacobi"
        for pes in (1, 2)
        if (ratio := over_hand(r, pes)) is not None
    ]
    if hand:
        yield f"- Ours over the hand-written kernels: {', '.join(hand)}. Goal: 1.10."
    for r in found:
        if r["kind"] == "first calls":
            first, *_, last = (call["seconds"] for call in r["calls"])
            yield (
                f"- First call, {r['what']}: {first:.2g} s, the third {1e3 * last:.2g} ms. "
                "Goals: 8 s, 0.2 s."
            )


def _goal(what: str, ratios: list[float | None], goal: str) -> Iterator[str]:
    known = [r for r in ratios if r is not None]
    if known:
        yield (
            f"- {what[0].upper()}{what[1:]}: {geometric_mean(known):.2f} (geometric mean of "
            f"{len(known)} programs), {min(known):.2f} at worst. Goal: {goal}."
        )
