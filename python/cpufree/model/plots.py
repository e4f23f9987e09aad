"""Plots of the communication model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cpufree.machine.communication import Communication
from cpufree.model.fit import MODE_OF, medians
from cpufree.model.loggop import PARTS, Payload, Verb
from cpufree.model.project import LESS_LAUNCH, SHARE, SHARES, SIZES, Roles, fixed, scaled
from cpufree.model.samples import Samples
from cpufree.model.use import curve, parameters, pipelined, single
from cpufree.model.validate import LARGEST_ERROR, Validation
from cpufree.output_file import write_file

COLORS = ("#2563a8", "#c8553d", "#2f8f5b", "#8a5aab", "#e0a458", "#5b6b7a", "#b0417e", "#3aa6a6",
          "#8c7a2a", "#1b2a49", "#f08fb0", "#8fc05a", "#6f4e37")  # fmt: skip
PART_COLORS = ("#2563a8", "#9db8d6", "#5b6b7a", "#e0a458", "#2f8f5b", "#c8553d", "#bbbbbb")
MARKERS = ("o", "s", "^", "v", "D")
LINE_INCHES = 0.19
"""Height of a line of a legend; figures grow with their legends, and with their bars:"""
BAR_INCHES = 0.3
UNDIVIDED = "parts not identifiable"
INK = "#222222"
BYTES = "message size [B]"
TIME = "time of a message [s]"
RESIDUAL = "predicted over measured, less 1"
LINEAR_UP_TO = 1.0
"""Residual up to which the scale is linear."""
LARGEST_RANGE = 20.0
"""Of costs that are stacked in microseconds; beyond, each is stacked in shares of its own."""
STACKED = 8.0
"""Bytes of the messages whose cost is stacked."""


def save_plot(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure; the suffix of the path says in which format."""
    FigureCanvasAgg(figure)
    kind = os.path.splitext(path)[1][1:].lower()
    with write_file(path) as file:
        figure.savefig(file, dpi=150, format=kind)


def axes_of(figure: Figure, rows: int, columns: int) -> list[Axes]:
    made = figure.subplots(rows, columns, squeeze=False)
    return [cast(Axes, axes) for axes in made.flat]


def tidy(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legend_beside(figure: Figure, axes: Sequence[Axes], without: str = "\n") -> None:
    """Put one legend for several plots beside them, but for labels that end so."""
    shown: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            if not label.endswith(without):
                shown.setdefault(label, handle)
    if shown:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, max(height, LINE_INCHES * len(shown)))
        figure.legend(
            list(shown.values()), list(shown), loc="outside right upper", frameon=False, fontsize=8
        )


def colored(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return a color for each name, and a marker that tells those of the same color apart."""
    return {
        name: (COLORS[k % len(COLORS)], MARKERS[k // len(COLORS) % len(MARKERS)])
        for k, name in enumerate(names)
    }


def draw_samples(samples: Samples) -> Figure:
    """Draw the median of each size, and the middle half of the samples: single, then windows."""
    figure = Figure(figsize=(12.5, 4.4), layout="constrained")
    both = axes_of(figure, 1, 2)
    for axes, mode, title in zip(
        both,
        ("single", "window"),
        ("Single messages, one way", "Windows: time per message"),
        strict=True,
    ):
        for way, (color, marker) in colored(samples.ways()).items():
            found = medians(samples, way, mode, None)
            if found is None:
                continue
            style: dict[str, Any] = {
                "marker": marker,
                "ms": 3.5,
                "lw": 1,
                "color": color,
                "label": way,
            }
            axes.plot(found.sizes, found.seconds, **style)
            low, high = _quartiles(samples, way, mode, found.sizes, found.messages)
            axes.fill_between(found.sizes, low, high, color=color, alpha=0.15, lw=0)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        tidy(axes, title, BYTES, TIME)
    legend_beside(figure, both)
    return figure


def _quartiles(
    samples: Samples, way: str, mode: str, sizes: np.ndarray, messages: int
) -> tuple[list[float], list[float]]:
    low, high = [], []
    for size in sizes:
        seconds = [
            one / messages
            for row in samples.rows
            if (row.way, row.mode, row.bytes, row.messages) == (way, mode, size, messages)
            for one in row.seconds
        ]
        a, b = np.quantile(seconds, (0.25, 0.75))
        low.append(float(a))
        high.append(float(b))
    return low, high


def draw_fit(found: Communication, samples: Samples) -> Figure:
    """Draw curves with the medians that they were fitted to, and the residuals below."""
    figure = Figure(figsize=(12.5, 7.4), layout="constrained")
    axes = axes_of(figure, 2, 2)
    for k, (kind, title) in enumerate(
        (("single", "Single messages (open: held out)"), ("pipelined", "Windows: time per message"))
    ):
        for way, (color, marker) in colored(found.ways).items():
            record = found.ways[way]
            if kind not in record.curves:
                continue
            fitted = curve(record.curves[kind])
            for held_out in (False, True):
                there = medians(samples, way, MODE_OF[kind], held_out, record.curves[kind].messages)
                if there is None:
                    continue
                label = f"{way}, {'held out' if held_out else 'fitted'}"
                face = "white" if held_out else color
                style: dict[str, Any] = {
                    "ms": 4.5,
                    "color": color,
                    "mfc": face,
                    "lw": 0,
                    "label": label,
                }
                axes[k].plot(there.sizes, there.seconds, marker, **style)
                error = fitted(there.sizes) / there.seconds - 1.0
                axes[k + 2].plot(there.sizes, error, marker, **style)
            sizes = np.geomspace(*(record.curves[kind].sizes or (8, 2**23)), 400)
            axes[k].plot(sizes, fitted(sizes), "-", lw=1.3, color=color)
        axes[k].set_yscale("log")
        tidy(axes[k], title, BYTES, TIME)
        axes[k + 2].axhspan(-LARGEST_ERROR, LARGEST_ERROR, color="#f0f0f0", lw=0)
        axes[k + 2].axhline(0, color=INK, lw=0.8)
        # Residuals of a disturbed measurement may be large: the others are to be seen beside them.
        axes[k + 2].set_yscale("symlog", linthresh=LINEAR_UP_TO, linscale=2.0)
        axes[k + 2].yaxis.set_major_formatter("{x:.3g}")
        tidy(axes[k + 2], f"Residuals, {kind} (band: {LARGEST_ERROR:.0%})", BYTES, RESIDUAL)
        for one in (axes[k], axes[k + 2]):
            one.set_xscale("log", base=2)
    legend_beside(figure, axes[:2], ", held out")
    return figure


def draw_machine(found: Communication) -> Figure:
    """Draw time against size for all ways, and the cost of a small message in its parts."""
    width = 6.5 + max(6.5, BAR_INCHES * len(found.ways))
    figure = Figure(figsize=(width, 5), layout="constrained")
    left, right = axes_of(figure, 1, 2)
    sizes = np.geomspace(8, 2**23, 400)
    for name, (color, marker) in colored(found.ways).items():
        for times, dashes, kind in (
            (single(found.ways[name], sizes), "-", "single"),
            (pipelined(found.ways[name], sizes), "--", "pipelined"),
        ):
            if times is not None:
                style: dict[str, Any] = {
                    "ls": dashes,
                    "marker": marker,
                    "markevery": 80,
                    "ms": 3.5,
                    "lw": 1.4,
                }
                left.plot(sizes, times, color=color, label=f"{name}, {kind}", **style)
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    tidy(left, f"{found.machine} (dashed: pipelined)", BYTES, TIME)
    legend_beside(figure, [left], ", pipelined")
    _stack(right, found)
    return figure


def _stack(axes: Axes, found: Communication) -> None:
    """Stack what the parameters add to a small message; one bar where they are not all known."""
    names, parts = [], []
    for name, way in found.ways.items():
        loggop, whole = parameters(way), single(way, STACKED)
        if loggop is not None:
            payload = cast(Payload, way.payload or "once")
            parts.append(loggop.parts(cast(Verb, way.verb), STACKED, payload))
        elif whole is not None:
            parts.append({UNDIVIDED: whole})
        else:
            continue
        names.append(name)
    bottom = np.zeros(len(names))
    totals = np.array([1e6 * sum(map(float, one.values())) for one in parts])
    shares = bool(names) and totals.max() > LARGEST_RANGE * totals.min()
    for part, color in zip((*PARTS, UNDIVIDED), PART_COLORS, strict=True):
        heights = np.array([float(one.get(part, 0.0)) * 1e6 for one in parts])
        heights = heights / totals if shares else heights
        if np.any(heights > 0):
            axes.bar(names, heights, bottom=bottom, color=color, width=0.6, label=part)
        bottom = bottom + heights
    for place, height in enumerate(bottom):
        said = f"{totals[place]:.2f} us" if shares else f"{height:.2f}"
        turn = 60 if shares else 0
        axes.annotate(said, (place, height), ha="center", va="bottom", fontsize=8, rotation=turn)
    if shares:
        axes.set_ylim(0, 1.25)
    title = f"Cost of a message of {STACKED:g} B"
    unit = "share of the time" if shares else "time [us]"
    tidy(axes, title if names else f"{title}: not known of any way", "", unit)
    turned = 90 if len(names) > 12 else 40 if len(names) > 4 else 25
    axes.tick_params(axis="x", rotation=turned)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("center" if turned == 90 else "right")
    if names:
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 0.4)}
        axes.legend(frameon=False, fontsize=8, **(beside if shares else {}))


def draw_validation(validation: Validation) -> Figure:
    """Draw predicted against measured times, at sizes held out."""
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    (axes,) = axes_of(figure, 1, 1)
    ends = [np.concatenate([one.measured, one.predicted]) for one in validation.checks]
    line = np.array([min(map(np.min, ends)) / 1.5, max(map(np.max, ends)) * 1.5])
    axes.fill_between(
        line, line * (1 - LARGEST_ERROR), line * (1 + LARGEST_ERROR), color="#e8e8e8", lw=0
    )
    axes.plot(line, line, color=INK, lw=0.8)
    colors = colored(dict.fromkeys(one.way for one in validation.checks))
    for one in validation.checks:
        label = f"{one.way}, {one.kind}: error {one.error:.1%}, R² {one.r2:.3f}"
        color, marker = colors[one.way]
        face = color if one.kind == "single" else "white"
        axes.plot(one.measured, one.predicted, marker, color=color, mfc=face, ms=5, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy(axes, f"Sizes held out (band: {LARGEST_ERROR:.0%})", "measured [s]", "predicted [s]")
    legend_beside(figure, [axes])
    return figure


def draw_projection(roles: Roles) -> Figure:
    """Draw figures 8 to 11 of Groves et al. 2020 for a machine."""
    figure = Figure(figsize=(13, 11.5), layout="constrained")
    figure.suptitle(roles.machine.machine, fontsize=11)
    axes = axes_of(figure, 3, 2)
    sizes = np.array(SIZES, dtype=np.float64)
    on_host = roles.ratio(roles.host, sizes)
    longer = (roles.single(roles.host, sizes * 5**0.5) + roles.launch) / roles.single(
        roles.cpu, sizes
    )
    _heat(axes[0], scaled(np.array(SHARES)[:, None], longer), "Fig. 8, scaled problem")
    _heat(axes[1], fixed(np.array(SHARES)[:, None], on_host), "Fig. 8, fixed problem")
    curves = {"single": on_host}
    _lines(axes[2], roles, curves, [roles.host], "Fig. 9: larger messages, pipelining")
    less = roles.ratio(roles.host, sizes, LESS_LAUNCH)
    pair = {f"K = {roles.launch * 1e6:.3g} us": on_host, f"K = {LESS_LAUNCH * 1e6:.3g} us": less}
    _lines(axes[3], roles, pair, [], "Fig. 10: launch and synchronization")
    ways = [roles.host, *([roles.device] if roles.device else [])]
    both = {f"{way}, single": roles.ratio(way, sizes) for way in ways}
    _lines(axes[4], roles, both, [], "Fig. 11: who initiates, single messages")
    _lines(axes[5], roles, {}, ways, "Fig. 11: who initiates, pipelined messages")
    return figure


def _heat(axes: Axes, gains: np.ndarray, title: str) -> None:
    logs = np.log2(gains)
    axes.imshow(logs, cmap="RdBu", vmin=-2.4, vmax=2.4, aspect="auto", origin="lower")
    for (row, column), gain in np.ndenumerate(gains):
        shade = "white" if abs(logs[row, column]) > 1.6 else INK
        axes.text(column, row, f"{gain:.1f}", ha="center", va="center", fontsize=5.5, color=shade)
    axes.set_title(f"{title}: mean {gains.mean():.2f}", fontsize=10, loc="left", color=INK)
    axes.set_yticks(range(len(SHARES)), [f"{share:.0%}" for share in SHARES])
    places = range(0, len(SIZES), 3)
    axes.set_xticks(places, [_size(SIZES[k]) for k in places])
    axes.set_xlabel("message size")
    axes.set_ylabel("communication on the CPU")


def _size(size: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _lines(
    axes: Axes,
    roles: Roles,
    ratios: dict[str, np.ndarray],
    pipes: Sequence[str],
    title: str,
) -> None:
    """Draw speed-ups of ratios, and those of pipelined messages of ways in either reading."""
    sizes = np.array(SIZES, dtype=np.float64)
    lines = [(label, ratio, "-") for label, ratio in ratios.items()]
    for way in pipes:
        for as_printed, style in ((False, "--"), (True, ":")):
            ratio = roles.pipelined_ratio(way, sizes, as_printed)
            said = "as printed" if as_printed else "in consistent units"
            if ratio is not None:
                lines.append((f"{way}, pipelined, {said}", ratio, style))
    for (label, ratio, style), color in zip(lines, COLORS, strict=False):
        axes.plot(sizes, fixed(SHARE, ratio), style, color=color, lw=1.5, label=label)
    axes.axhline(1, color=INK, lw=0.7)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    tidy(axes, f"{title} ({SHARE:.0%} comm.)", BYTES, "speed-up on GPUs")
    if lines:
        axes.legend(frameon=False, fontsize=8)
