"""What `cpufree model` shows: tables of samples, machine files, validations and projections."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from cpufree.cli import display
from cpufree.text import counted, number

if TYPE_CHECKING:
    from cpufree.machine.communication import Communication, WayRecord
    from cpufree.machine.files import Quantity
    from cpufree.model.advice import Priority, Roles
    from cpufree.model.patterns.validate import PatternCheck
    from cpufree.model.samples import Samples
    from cpufree.model.use import Prediction
    from cpufree.model.validate import Check, Validation

SCALES = {"s": (1e6, "us"), "s/B": (1e9, "ns/B"), "1/s": (1e-6, "million/s"), "1": (1.0, "")}


def samples_report(samples: Samples, what: Mapping[str, str]) -> RenderableType:
    """Return what was measured, by way."""
    rows = []
    for way in samples.ways():
        of_way = [row for row in samples.rows if row.way == way]
        sizes = sorted({row.bytes for row in of_way})
        kind = of_way[0].kind
        who = f"{kind.initiated} / {kind.triggered} / {kind.controlled}"
        times = number(sum(len(row.seconds) for row in of_way))
        rows.append((way, what.get(way, ""), who, f"{sizes[0]} to {sizes[-1]} B", times))
    head = ("way", "what", "initiated / triggered / controlled", "messages", "times")
    parts: list[RenderableType] = [display.columns(head, rows, "Measured")]
    reasons: dict[str, list[str]] = {}
    for way, why in samples.missing.items():
        reasons.setdefault(why, []).append(way)
    for why, ways in reasons.items():
        are = "is" if len(ways) == 1 else "are"
        parts.append(Text(f"  {', '.join(ways)} {are} not here: {why}"))
    if samples.disturbed:
        parts.append(Text(f"  {samples.disturbed}"))
    return Group(*parts)


def quantity(one: Quantity) -> tuple[str, str]:
    """Return value and interval of a quantity as texts."""
    factor, unit = SCALES[one.unit]
    value = f"{one.value * factor:.4g} {unit}".rstrip()
    if one.pieces:
        starts = ", ".join(
            f"{slope * factor:.3g} from {start:.0f} B" for start, slope in one.pieces
        )
        value = f"{starts} [{unit}]"
    if one.low is None or one.high is None:
        return value, ""
    return value, f"{one.low * factor:.4g} to {one.high * factor:.4g}"


def machine_report(found: Communication) -> RenderableType:
    """Return what a machine file says."""
    parts: list[RenderableType] = [Text(found.machine, style="bold")]
    parts.append(display.pairs((key, value) for key, value in found.provenance.items()))
    for name, way in found.ways.items():
        parts.append(_way_report(name, way))
    if found.constants:
        rows = [(key, *quantity(one), one.provenance) for key, one in found.constants.items()]
        head = ("constant", "value", "95 % interval", "where from")
        parts.append(display.columns(head, rows, "Constants"))
    return Group(*parts)


def choices_report(choices: Mapping[str, Quantity], like: str) -> RenderableType:
    """Return the numbers of a calibration."""
    rows = []
    for name, one in choices.items():
        ends = "" if one.low is None else f"{one.low:.4g} to {one.high:.4g}"
        told = f"{one.value:.4g}"
        if one.table:
            least, most = min(one.table), max(one.table)
            told = f"{one.table[least]:.3g} (at {least}) to {one.table[most]:.3g} (at {most})"
        rows.append((name, f"{told} {one.unit.replace('1', '', 1)}".rstrip(), ends))
    table = display.columns(("choice", "value", "95 % interval"), rows, "Calibrated")
    return Group(table, Text(f"  all else as of {like}"))


def _way_report(name: str, way: WayRecord) -> RenderableType:
    rows = [(key, *quantity(one)) for key, one in way.parameters.items()]
    rows += [(key, "not identifiable", why) for key, why in way.unknown.items()]
    if way.payload:
        rows.append(("payload", f"counts {way.payload}", ""))
    for key, curve in way.curves.items():
        breaks = ", ".join(number(one) for one in curve.breaks)
        said = f"{curve.form}, breaks at {breaks} B" if breaks else curve.form
        spread = f"-{curve.spread[1]:.0%} to {curve.spread[1]:.0%}" if curve.spread else ""
        rows.append((f"curve {key}", said, spread))
    who = f"{way.verb}; initiated, triggered, controlled by {way.initiated}, {way.triggered}, "
    title = f"{name} ({who}{way.controlled})"
    return display.columns(("parameter", "value", "95 % interval, or why"), rows, title)


def validation_report(found: Validation) -> RenderableType:
    """Return what came of a validation."""
    from cpufree.model import validate as limits
    from cpufree.model.validate import LARGEST_ERROR, LARGEST_FACTOR, LEAST_R2

    title = f"Curves, sizes held out: error at most {LARGEST_ERROR:.0%}, R² at least {LEAST_R2:g}"
    parts: list[RenderableType] = [_checks_report(found.checks, title)]
    if found.equations:
        title = (
            f"Equations of LogGOP, sizes held out: error at most {LARGEST_ERROR:.0%} up to "
            f"{number(limits.SMALL)} B, {limits.LARGEST_ERROR_ABOVE:.0%} above; of "
            f"{counted(len({one.way for one in found.checks}), 'way')}, those whose parameters "
            "samples identify"
        )
        parts.append(_checks_report(found.equations, title))
    if found.crossings:
        crossings = [
            (
                " and ".join(one.ways),
                _size(one.measured),
                _size(one.predicted),
                "passed" if one.passed else "NOT passed",
            )
            for one in found.crossings
        ]
        title = f"Where two ways cross: within {LARGEST_FACTOR:g} ×"
        head_of_crossings = ("ways", "measured", "predicted", "verdict")
        parts.append(display.columns(head_of_crossings, crossings, title))
    if found.patterns:
        parts.append(_pattern_report(found.patterns))
    return Group(*parts)


def _checks_report(found: Sequence[Check], title: str) -> RenderableType:
    rows = [
        (
            one.way,
            one.kind,
            str(len(one.sizes)),
            f"{one.error:.1%}",
            f"{one.r2:.4f}",
            "passed" if one.passed else "NOT passed",
        )
        for one in found
    ]
    head = ("way", "messages", "sizes", "median error", "R² of logarithms", "verdict")
    return display.columns(head, rows, title)


def _pattern_report(found: Sequence[PatternCheck]) -> RenderableType:
    from cpufree.model.patterns.validate import LARGEST_ERROR, LEAST_R2

    rows = [
        (
            one.pattern,
            one.where,
            ", ".join(map(str, sorted(set(one.pes)))),
            str(len(one.measured)),
            f"{one.error:.1%}",
            f"{one.r2:.4f}",
            f"no test: {one.aside}" if one.aside else "passed" if one.passed else "NOT passed",
        )
        for one in found
    ]
    head = ("pattern", "on", "PEs", "points", "median error", "R² of logarithms", "verdict")
    title = (
        f"Patterns, which no fit has seen: error at most {LARGEST_ERROR:.0%}, and of products that "
        f"block, R² at least {LEAST_R2:g}"
    )
    return display.columns(head, rows, title)


def _size(value: float | None) -> str:
    return "nowhere" if value is None else f"{number(value)} B"


def validation_facts(found: Validation) -> dict[str, Any]:
    """Return a validation for JSON."""
    from cpufree.model.patterns.validate import PatternCheck

    def of(one: Check | PatternCheck) -> dict[str, Any]:
        passed = None if isinstance(one, PatternCheck) and one.aside else one.passed
        return {**dataclasses.asdict(one), "error": one.error, "r2": one.r2, "passed": passed}

    return {
        "passed": found.passed,
        "counts": {name: [sum(group), len(group)] for name, group in found.groups.items()},
        "coverage": found.coverage,
        "checks": [of(one) for one in found.checks],
        "equations": [of(one) for one in found.equations],
        "crossings": [{**dataclasses.asdict(one), "passed": one.passed} for one in found.crossings],
        "patterns": [of(one) for one in found.patterns],
    }


def prediction_report(sizes: Sequence[int], found: Prediction) -> RenderableType:
    """Return the times of messages."""
    rows = []
    for k, size in enumerate(sizes):
        interval = ""
        if found.low is not None and found.high is not None:
            low, high = float(found.low[k]), float(found.high[k])
            interval = f"{display.seconds(low)} to {display.seconds(high)}"
        rows.append((f"{number(size)} B", display.seconds(float(found.seconds[k])), interval))
    table = display.columns(("message", "time", "95 % interval"), rows, "Predicted")
    return Group(table, Text(f"  {found.note}"))


def advice_report(
    roles: Roles, found: Sequence[Priority], fixed: float, scaled: float, even: float | None
) -> RenderableType:
    """Return the ranks of priorities, and what applications gain in the mean."""
    rows = [
        (
            str(rank) if one.gain is not None else "-",
            one.what,
            "" if one.gain is None else f"{one.gain:.2f} ×",
            one.how,
            str(one.paper),
        )
        for rank, one in enumerate(found, 1)
    ]
    head = ("rank", "change", "gain", "how", "in the paper")
    gains = [
        ("ways", f"CPU {roles.cpu}, host {roles.host}, device {roles.device or 'none'}"),
        ("launch and synchronization K", f"{roles.launch * 1e6:.3g} us"),
        ("mean speed-up of a fixed problem", f"{fixed:.2f}"),
        ("mean speed-up of a scaled problem", f"{scaled:.2f}"),
    ]
    if even is not None:
        gains.append(("K from which the device is faster at 8 B", f"{even * 1e6:.2f} us"))
    title = Text(roles.machine.machine, style="bold")
    return Group(title, display.columns(head, rows, "What to change first"), display.pairs(gains))
