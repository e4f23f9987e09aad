"""A picture of a part of a trace: what each block does, and the messages between PEs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpufree.trace.picture import new_figure, write_figure
from cpufree.trace.records import PHASES, Integers, Kind, Trace
from cpufree.trace.timeline import Timeline, track_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ITERATIONS = 2
MOST_BLOCKS = 4
"""Of a PE, that are shown."""
_WAIT = "waiting"
_COLOURS = ("#4c78a8", "#54a24b", "#e7e7e7", "#b79a20", "#439894", "#83bcb6", "#9467bd", "#79706e")


def save_timeline(trace: Trace, path: str) -> None:
    """Draw some iterations of a trace that is on one clock: those that take the median time.

    Raises
    ------
    UnsupportedError
        Matplotlib is not installed.
    """
    line = Timeline(trace)
    begin, end = window(trace)
    rows = shown_tracks(trace)
    figure = new_figure(11, 0.9 + 0.32 * len(rows))
    axes = figure.subplots()
    _draw_slices(axes, line, rows, begin, end)
    _draw_arrows(axes, line, rows, begin, end)
    names = [f"PE {trace.tracks[t, 0]}, {track_name(trace, *trace.tracks[t, 1:3])}" for t in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set(xlim=(0.0, 1e-3 * (end - begin)), ylim=(len(rows) - 0.4, -0.6), xlabel="µs")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    facts = trace.facts
    axes.set_title(f"{facts.get('what', 'kernel')}: {facts.get('engine', '')}", fontsize=10)
    below = (0.5, -0.12 - 0.6 / len(rows))
    axes.legend(ncols=6, fontsize=8, loc="upper center", bbox_to_anchor=below, frameon=False)
    write_figure(figure, path)


def window(trace: Trace) -> tuple[int, int]:
    """Return the times between which the iterations lie that are shown, in ns; all without any.

    Of a trace of one iteration in several it is one.
    """
    gaps = trace.select(Kind.LEFT_OUT)
    if len(gaps):
        gaps = gaps[trace.track[gaps] == trace.track[gaps[0]]]
        between = np.flatnonzero(np.diff(trace.lower[gaps]) == 0)
        if len(between):
            lasts = trace.time[gaps[between + 1]] - trace.time[gaps[between]]
            here = between[int(np.argsort(lasts, kind="stable")[len(lasts) // 2])]
            return int(trace.time[gaps[here]]), int(trace.time[gaps[here + 1]])
    marks = trace.select(Kind.ITERATION)
    marks = marks[trace.track[marks] == trace.track[marks[:1]]] if len(marks) else marks
    times = trace.time[marks]
    lasts = times[ITERATIONS:] - times[:-ITERATIONS]
    if not len(lasts):
        return 0, int(trace.time.max(initial=1))
    first = int(np.argsort(lasts, kind="stable")[len(lasts) // 2])
    return int(times[first]), int(times[first + ITERATIONS])


def shown_tracks(trace: Trace) -> list[int]:
    """Return the rings that are shown: some blocks of each PE, and its NIC."""
    found = []
    for pe in range(trace.pes):
        mine = np.flatnonzero((trace.tracks[:, 0] == pe) & (trace.tracks[:, 2] == 0))
        mine = mine[np.argsort(trace.tracks[mine, 1], kind="stable")]
        some = np.linspace(0, len(mine) - 1, min(MOST_BLOCKS, len(mine))).astype(np.int64)
        found += mine[some].tolist()
    return found


def _draw_slices(axes: Axes, line: Timeline, rows: list[int], begin: int, end: int) -> None:
    """Draw sections where there are some, and phases; over them waits."""
    slices, texts = line.slices, line.names.texts
    seen = (slices.end > begin) & (slices.begin < end) & np.isin(slices.track, rows)
    phases = [name for name in PHASES if name in line.names.numbers]
    sections = [texts[k] for k in np.unique(slices.name[slices.section & seen])]
    waits = [k for k, text in enumerate(texts) if text.startswith("waits")]
    layers = [(name, [line.names.numbers[name]]) for name in (sections or phases)]
    for k, (name, numbers) in enumerate([*layers, (_WAIT, waits)]):
        mine = np.flatnonzero(seen & np.isin(slices.name, numbers))
        if not len(mine):
            continue
        from_, to = (np.clip(t[mine], begin, end) - begin for t in (slices.begin, slices.end))
        place = np.searchsorted(rows, slices.track[mine], sorter=np.argsort(rows))
        y = np.argsort(rows)[place]
        high, colour = (0.3, "#e45756") if name == _WAIT else (0.7, _COLOURS[k % len(_COLOURS)])
        axes.barh(y, 1e-3 * (to - from_), high, 1e-3 * from_, label=name, color=colour)


def _draw_arrows(axes: Axes, line: Timeline, rows: list[int], begin: int, end: int) -> None:
    trace, arrows = line.trace, line.arrows
    time, track = trace.time, trace.track
    block = np.array([_leader(trace, t) for t in range(len(trace.tracks))])
    kinds = trace.kind[arrows.sent] != Kind.PARTIAL  # sums go from all to all
    far = trace.pe[arrows.sent] != trace.pe[arrows.seen]
    inside = (time[arrows.sent] >= begin) & (time[arrows.seen] <= end)
    place = {ring: y for y, ring in enumerate(rows)}
    for k in np.flatnonzero(kinds & far & inside).tolist():
        ends: Integers = np.array([arrows.sent[k], arrows.seen[k]])
        ys = [place.get(int(block[track[e]])) for e in ends.tolist()]
        if None in ys:
            continue
        xs = (1e-3 * (time[ends] - begin)).tolist()
        arrow = {"arrowstyle": "-|>", "lw": 0.8, "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (xs[1], ys[1]), (xs[0], ys[0]), arrowprops={**arrow, "color": "black"})


def _leader(trace: Trace, ring: int) -> int:
    """Return the ring of the first thread of the same block."""
    tracks = trace.tracks
    same = (tracks[:, 0] == tracks[ring, 0]) & (tracks[:, 1] == tracks[ring, 1])
    return int(np.flatnonzero(same & (tracks[:, 2] == tracks[same, 2].min()))[0])
