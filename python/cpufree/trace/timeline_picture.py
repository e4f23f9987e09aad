"""A picture of a part of a trace: what each block does, and the messages between PEs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpufree.trace.picture import new_figure, write_figure
from cpufree.trace.records import PHASES, Integers, Kind, Trace
from cpufree.trace.report import BlockWaits
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
    rows = shown_tracks(trace, line)
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
    times = _iterations(trace)
    lasts = times[ITERATIONS:] - times[:-ITERATIONS]
    if not len(lasts):
        return 0, int(trace.time.max(initial=1))
    first = int(np.argsort(lasts, kind="stable")[len(lasts) // 2])
    return int(times[first]), int(times[first + ITERATIONS])


def _iterations(trace: Trace) -> Integers:
    """Return when iterations begin, in ns: GPUs tell the host of few, so that sums count them."""
    marks = trace.select(Kind.ITERATION)
    found: Integers = trace.time[marks[trace.track[marks] == trace.track[marks[:1]]]]
    if len(found) > ITERATIONS:
        return found
    sums = trace.select(Kind.REDUCE)
    sums = sums[(trace.track[sums] == trace.track[sums[:1]]) & (trace.lower[sums] == 1)]
    each = max(1, round(len(sums) / max(1, int(trace.facts.get("iterations", 1)))))
    by_sums: Integers = trace.time[sums[::each]]
    return by_sums


def shown_tracks(trace: Trace, line: Timeline) -> list[int]:
    """Return the rings that are shown: blocks of each PE, some that others wait for, and NICs."""
    exchanged = np.zeros(len(trace.tracks), np.int64)
    np.add.at(exchanged, leaders(trace)[trace.track[_enders(line)[0]]], 1)
    found = []
    for pe in range(trace.pes):
        mine = np.flatnonzero((trace.tracks[:, 0] == pe) & (trace.tracks[:, 2] == 0))
        mine = mine[np.argsort(trace.tracks[mine, 1], kind="stable")]
        some = np.linspace(0, len(mine) - 1, min(MOST_BLOCKS, len(mine))).astype(np.int64)
        most = np.argsort(-exchanged[mine], kind="stable")[: len(some) // 2]
        most = most[exchanged[mine[most]] > 0]
        chosen = [*most, *(k for k in some if k not in most)][: len(some)]
        found += mine[np.sort(chosen)].tolist()
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
    trace, block = line.trace, leaders(line.trace)
    time, track = trace.time, trace.track
    sent, seen = _enders(line)
    inside = (time[sent] >= begin) & (time[seen] <= end)
    place = {ring: y for y, ring in enumerate(rows)}
    for ends in np.stack([sent, seen], axis=1)[inside]:
        ys = [place.get(int(block[track[e]])) for e in ends.tolist()]
        if None in ys:
            continue
        xs = (1e-3 * (time[ends] - begin)).tolist()
        arrow = {"arrowstyle": "-|>", "lw": 0.8, "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (xs[1], ys[1]), (xs[0], ys[0]), arrowprops={**arrow, "color": "black"})


def _enders(line: Timeline) -> tuple[Integers, Integers]:
    """Return the messages of other PEs that ended waits of blocks: records of both ends."""
    waits, pe = line.waits, line.trace.pe
    last = BlockWaits.of(line).last
    last = last[waits.sent[last] >= 0]
    sent, seen = waits.sent[last], waits.end[last]
    far = pe[sent] != pe[seen]
    return sent[far], seen[far]


def leaders(trace: Trace) -> Integers:
    """Return of each ring that of the first thread of its block."""
    order = np.lexsort((trace.tracks[:, 2], trace.tracks[:, 1], trace.tracks[:, 0]))
    _, first, block = np.unique(
        trace.tracks[order, :2], axis=0, return_index=True, return_inverse=True
    )
    found = np.empty(len(order), np.int64)
    found[order] = order[first[block.reshape(-1)]]
    return found
