"""Pictures of the simulator: sweeps, timelines, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from cpufree.model.plots import INK, tidy
from cpufree.simulate.graph import LANES, Graph
from cpufree.simulate.programs import Workload
from cpufree.simulate.run import Run
from cpufree.simulate.study import Message
from cpufree.simulate.sweep import Point
from cpufree.simulate.timeline import slices

COLOR_OF = {
    "cpu": "#5b6b7a", "hdn": "#c8553d", "gds": "#e0a458", "nccl": "#8a5aab", "tn": "#2563a8",
    "proxy": "#3aa6a6", "native": "#2f8f5b",
}  # fmt: skip
NAME_OF = {
    "cpu": "CPU", "hdn": "host-driven", "gds": "GPUDirect Async", "nccl": "NCCL style",
    "tn": "triggered", "proxy": "host proxy", "native": "native",
}  # fmt: skip
COLOR_OF_GROUP = {
    "computation": "#2563a8", "launch and end of kernels": "#9db8d6", "CPU for messages": "#c8553d",
    "GPU for messages": "#e0a458", "network card": "#2f8f5b", "message": "#8a5aab",
}  # fmt: skip
GROUP_OF = {
    "compute on CPU": "computation", "compute": "computation", "kernel": "computation",
    "synchronize": "computation", "launch": "launch and end of kernels",
    "teardown": "launch and end of kernels", "issue": "launch and end of kernels",
    "match": "network card", "handshake": "network card", "message": "message",
    "arrival": "message", "hop": "message",
    **dict.fromkeys(("notice", "send", "receive", "post", "proxy"), "CPU for messages"),
}  # fmt: skip
"""What is in neither is what a GPU does for messages."""
SHOWN = 4
"""PEs on a picture of a timeline."""


def _power_ticks(axes: Axes, numbers: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    every = max(1, -(-len(numbers) // 8))
    axes.set_xticks(list(numbers)[::every])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def draw_sweep(points: Sequence[Point], title: str, what: str) -> Figure:
    """Draw time and efficiency over the number of PEs; `what` is timed."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = (cast(Axes, axes) for axes in figure.subplots(1, 2))
    ways = list(dict.fromkeys(point.way for point in points))
    numbers = sorted({point.pes for point in points})
    for way in ways:
        of_way = [point for point in points if point.way == way]
        x = [point.pes for point in of_way]
        style = {"color": COLOR_OF[way], "marker": "o", "markersize": 3.5, "label": NAME_OF[way]}
        left.plot(x, [point.seconds * 1e6 for point in of_way], **style)  # type: ignore[arg-type]
        right.plot(x, [point.efficiency * 100 for point in of_way], **style)  # type: ignore[arg-type]
    left.set_yscale("log")
    right.set_ylim(0, max(105, max(point.efficiency for point in points) * 105))
    for axes in (left, right):
        _power_ticks(axes, numbers)
    tidy(left, title, "PEs", f"time of {what} [µs]")
    tidy(right, "parallel efficiency", "PEs", "efficiency [%]")
    left.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.yaxis.set_minor_formatter(NullFormatter())
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    return figure


def draw_timeline(graph: Graph, run: Run, title: str, pes: int = SHOWN) -> Figure:
    """Draw what CPU, GPU and network card of the first PEs do, from the last round but one on."""
    assert run.finish is not None
    shown = list(slices(graph, run, pes))
    begin = float(run.round_ends[-3]) if len(run.round_ends) > 3 else 0.0
    shown = [one for one in shown if one.start >= begin]
    rows = sorted({(one.pe, LANES.index(one.lane)) for one in shown})
    figure = Figure(figsize=(11, 0.9 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for one in shown:
        group = GROUP_OF.get(one.what, "GPU for messages")
        at = rows.index((one.pe, LANES.index(one.lane)))
        axes.barh(at, (one.end - one.start) * 1e6, left=(one.start - begin) * 1e6, height=0.74,
                  color=COLOR_OF_GROUP[group], edgecolor="white", linewidth=0.3)  # fmt: skip
    axes.set_yticks(range(len(rows)), [f"PE {pe}  {LANES[lane]}" for pe, lane in rows], fontsize=7)
    axes.invert_yaxis()
    for at, (pe, _) in enumerate(rows):
        if at and rows[at - 1][0] != pe:
            axes.axhline(at - 0.5, color="#bbbbbb", linewidth=0.6)
    tidy(axes, title, "time [µs]", "")
    used = {GROUP_OF.get(one.what, "GPU for messages") for one in shown}
    figure.legend(
        handles=[Patch(color=c, label=g) for g, c in COLOR_OF_GROUP.items() if g in used],
        loc="outside lower center", ncols=6, frameon=False, fontsize=8,
    )  # fmt: skip
    return figure


def draw_paper(
    messages: Mapping[str, Message],
    sides: Sequence[int],
    iterations: Mapping[str, Sequence[float]],
    nodes: Sequence[int],
    reductions: Mapping[str, Sequence[float]],
    training: Mapping[str, Mapping[str, float]],
    workloads: Sequence[Workload],
) -> Figure:
    """Draw figures 8 to 11 of LeBeane et al. 2017 as the simulator has them."""
    figure = Figure(figsize=(11.5, 8.4), layout="constrained")
    a, b, c, d = (cast(Axes, axes) for axes in figure.subplots(2, 2).flat)
    ways = list(messages)
    a.barh([NAME_OF[w] for w in ways], [messages[w].arrival for w in ways],
           color=[COLOR_OF[w] for w in ways], height=0.6)  # fmt: skip
    a.plot([messages[w].kernel_end for w in ways], [NAME_OF[w] for w in ways], "|", color=INK,
           markersize=16, markeredgewidth=2)  # fmt: skip
    a.invert_yaxis()
    tidy(a, "figure 8: a cache line has arrived (| the kernel has ended)", "time [µs]", "")
    for way, times in iterations.items():
        b.plot(sides, [h / t for h, t in zip(iterations["hdn"], times, strict=True)],
               color=COLOR_OF[way], marker="o", markersize=3, label=NAME_OF[way])  # fmt: skip
    _power_ticks(b, [n for n in sides if n & (n - 1) == 0])
    tidy(b, "figure 9: a Jacobi iteration", "points of a PE in a direction",
          "speed-up over host-driven")  # fmt: skip
    for way, times in reductions.items():
        c.plot(nodes, [h / t for h, t in zip(reductions["cpu"], times, strict=True)],
               color=COLOR_OF[way], marker="o", markersize=3, label=NAME_OF[way])  # fmt: skip
    tidy(c, "figure 10: an all-reduce of 8 MB", "nodes", "speed-up over the CPU")
    _bars(d, training, workloads)
    handles: list[Artist] = [Patch(color=COLOR_OF[w], label=NAME_OF[w]) for w in iterations]
    handles.append(Line2D([], [], color=INK, label="bound of Amdahl"))
    figure.legend(handles=handles, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    return figure


def _bars(
    axes: Axes, training: Mapping[str, Mapping[str, float]], workloads: Sequence[Workload]
) -> None:
    ways = [way for way in next(iter(training.values())) if way not in ("hdn", "cpu")]
    width = 0.8 / len(ways)
    for k, way in enumerate(ways):
        x = [i + (k - (len(ways) - 1) / 2) * width for i in range(len(workloads))]
        axes.bar(x, [training[w.name][way] for w in workloads], width, color=COLOR_OF[way])
    for i, workload in enumerate(workloads):
        axes.plot([i - 0.45, i + 0.45], [workload.bound()] * 2, color=INK, linewidth=1.2)
    axes.set_xticks(
        range(len(workloads)), [w.name.replace(" ", "\n") for w in workloads], fontsize=8
    )
    axes.set_ylim(0.95, max(w.bound() for w in workloads if w.bound() < 1.9) * 1.04)
    tidy(axes, "figure 11: training on 8 nodes", "", "speed-up over host-driven")
    axes.text(1, axes.get_ylim()[1], "bound: 2.0", ha="center", va="top", fontsize=8, color=INK)
