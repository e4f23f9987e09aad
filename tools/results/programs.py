"""Tables of compiled programs on GPUs (docs/compiler.md), from records of bench/programs.py.

Of the first record all tables are made, of others those of more than two GPUs.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.declared.measure import measurements
from tools.results.records import declared_lines, problems

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
    """Return what a record says of each program and size: medians of seconds a step.

    `times` has them by contender and number of GPUs, of whole calls (`seconds`) and of kernels.
    """
    found: dict[tuple[str, int, str], Record] = {}
    of_cases = problems(name)
    for case, of in measurements(declared_lines(name)):
        p = of_cases[case]
        row: Record = {"program": p["program"], "n": p["points"], "type": p["type"], "times": {}}
        row = found.setdefault((p["program"], p["points"], p["type"]), row)
        for who, those in of.items():
            row["times"][who, int(p["pes"])] = {
                "on_chip": bool(those[0].get("on_chip")),
                **{
                    what: statistics.median(line[what] for line in those)
                    for what in ("seconds", "kernel")
                    if what in those[0]
                },
            }
    return list(found.values())


def gpus_of(name: str) -> str:
    """Return what a record ran on: 2 NVIDIA H200."""
    head = declared_lines(name)[0]
    if isinstance(head.get("gpus"), list):
        return f"{len(head['gpus'])} {head['gpus'][0]}"
    return str(head["machine"]["gpus"]).replace(" × ", " ")


def is_jacobi(record: Record) -> bool:
    """Return whether there are hand-written kernels of it."""
    return record["program"] in ("jacobi", "jacobi_3d")


def microseconds(record: Record, who: str, pes: int, what: str) -> float | None:
    """Return microseconds a step of a measurement; None: there is none."""
    value = record["times"].get((who, pes), {}).get(what)
    return None if value is None else 1e6 * value


def programs_of(found: Iterable[Record], sizes: tuple[int, ...]) -> list[Record]:
    """Return the records of the ten programs at some sizes."""
    return [r for r in found if r["n"] in sizes and r["program"] in TEN]


def further_programs(found: Iterable[Record]) -> list[Record]:
    """Return the records of programs beyond the ten, which no mean counts, smallest first."""
    return sorted(
        (r for r in found if not is_jacobi(r) and r["program"] not in TEN),
        key=lambda r: r["n"],
    )


def over_rivals(record: Record) -> float | None:
    """Return the time of the best of the others over ours on one GPU, of whole calls."""
    mine = microseconds(record, "cpufree", 1, "seconds")
    rivals = [microseconds(record, who, 1, "seconds") for who in ("cupy", "jax")]
    there = [one for one in rivals if one is not None]
    return min(there) / mine if mine and there else None


def over_hosted(record: Record, pes: int) -> float | None:
    """Return the time of the host-driven variant over ours, without the copies of arrays."""
    mine, other = (microseconds(record, w, pes, "kernel") for w in ("cpufree", "host-driven"))
    return other / mine if mine and other else None


def over_hand(record: Record, pes: int) -> float | None:
    """Return our time over that of the hand-written kernel."""
    mine, other = (microseconds(record, w, pes, "kernel") for w in ("cpufree", "hand-written"))
    return mine / other if mine and other else None


def table(records: list[Record]) -> Iterator[str]:
    """Yield a table of programs: microseconds a step, of whole calls but the host-driven."""
    yield from _HEAD
    for r in records:
        cells = [f"{r['program']} {_side(r)}"]
        for pes in (1, 2):
            chip = " \\*" if r["times"].get(("cpufree", pes), {}).get("on_chip") else ""
            cells.append(_cell(microseconds(r, "cpufree", pes, "seconds")) + chip)
            cells.append(_cell(microseconds(r, "host-driven", pes, "kernel")))
        cells += [_cell(microseconds(r, who, 1, "seconds")) for who in ("cupy", "jax")]
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
    records += [*further_programs(found), *filter(is_jacobi, found)]
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
            of = (("cpufree", 1), *((w, pes) for w in ("cpufree", "hand-written", "host-driven")))
            cells += [_cell(microseconds(r, who, count, "kernel")) for who, count in of]
            yield f"| {' | '.join(cells)} | {over_hosted(r, pes):.2f} |"
        yield ""


def _side(record: Record) -> str:
    """Return a grid's size, as in 256²."""
    deep = record["n"] in (128, 64, 384) or record["program"].endswith("_3d")
    return f"{record['n']}{'³' if deep else '²'}"


def jacobi_table(found: list[Record]) -> Iterator[str]:
    """Yield a table of Jacobi iterations: microseconds a step of the kernels alone."""
    sides = "host-driven | hand-written"
    yield f"| program | one GPU | {sides} | two GPUs | {sides} |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for r in filter(is_jacobi, found):
        cells = [f"{r['program']} {r['n']}, {r['type']}"]
        for pes in (1, 2):
            for who in ("cpufree", "host-driven", "hand-written"):
                cells.append(_cell(microseconds(r, who, pes, "kernel")))
        yield f"| {' | '.join(cells)} |"


def text_of(*names: str) -> str:
    """Return what docs/compiler.md says of records."""
    return "\n".join(_lines({name: read(name) for name in names})).strip()


def _lines(records: dict[str, list[Record]]) -> Iterator[str]:
    (name, found), *others = records.items()
    start = f"On {gpus_of(name)}, µs a step (`bench/results/{name}`): "
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
    if any(map(is_jacobi, found)):
        yield "Jacobi iterations, µs a step of the kernels alone:"
        yield ""
        yield from jacobi_table(found)
        yield ""
    for one, measured in records.items():
        yield from more_gpus(measured, one)
    yield from _goals(found)
    yield from _first_calls(name)
    for _, measured in others:
        yield from _hosted_goals(measured, (4, 8))


SIDES = {"small": "1024² and 128³", "least": "256² and 64³", "large": "4096² and 384³"}


def _hosted_goals(found: list[Record], counts: tuple[int, ...]) -> Iterator[str]:
    """Yield what the host-driven variant on a number of GPUs was to reach, and what it reaches."""
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
        for r in filter(is_jacobi, found)
        for pes in (1, 2)
        if (ratio := over_hand(r, pes)) is not None
    ]
    if hand:
        yield f"- Ours over the hand-written kernels: {', '.join(hand)}. Goal: 1.10."


def _first_calls(name: str) -> Iterator[str]:
    for line in declared_lines(name):
        if line["kind"] == "first calls":
            first, *_, last = (call["seconds"] for call in line["calls"])
            yield (
                f"- First call, {line['what']}: {first:.2g} s, the third {1e3 * last:.2g} ms. "
                "Goals: 8 s, 0.2 s."
            )


def _goal(what: str, ratios: list[float | None], goal: str) -> Iterator[str]:
    known = [r for r in ratios if r is not None]
    if known:
        yield (
            f"- {what[0].upper()}{what[1:]}: {geometric_mean(known):.2f} (geometric mean of "
            f"{len(known)} programs), {min(known):.2f} at worst. Goal: {goal}."
        )
