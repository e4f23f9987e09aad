"""Plots of the communication model: what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from synthetic_samples import LOGGOP, rows_of, samples_of

from cpufree.machine import load
from cpufree.machine.communication import load_ways
from cpufree.model.fit import fit
from cpufree.model.plots import (
    UNDIVIDED,
    draw_fit,
    draw_machine,
    draw_prediction,
)
from cpufree.model.solve import estimate, iteration_seconds

pytestmark = pytest.mark.usefixtures("few_replicates")
SAMPLES = samples_of(rows_of(LOGGOP, noise=0.02))


def lines_of(figure: Figure, panel: int) -> dict[str, tuple[Any, Any]]:
    """Return (x, y) of the lines of a panel by label."""
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for line in figure.axes[panel].get_lines()
    }


def test_fit_is_drawn_with_sizes_held_out_and_residuals() -> None:
    figure = draw_fit(fit(SAMPLES), SAMPLES)
    assert len(lines_of(figure, 0)["w, held out"][0]) == 10
    residuals = lines_of(figure, 2)["w, fitted"][1]
    assert len(residuals) == 21 and 0 < np.max(np.abs(residuals)) < 0.05


def test_parts_of_a_small_message_are_stacked_to_its_time() -> None:
    axes = draw_machine(load_ways("summit-2020")).axes[1]
    tops: dict[int, float] = {}
    for bar in axes.patches:
        place = round(bar.get_x() + bar.get_width() / 2)  # type: ignore[attr-defined]
        tops[place] = max(tops.get(place, 0.0), bar.get_y() + bar.get_height())  # type: ignore[attr-defined]
    assert [tops[k] for k in range(4)] == pytest.approx([1.998, 2.070, 6.337, 11.169], abs=1e-3)


def test_a_message_whose_parts_are_not_known_is_one_bar() -> None:
    found = fit(samples_of(rows_of(LOGGOP, modes=("single",))))
    axes = draw_machine(found).axes[1]
    assert axes.get_legend_handles_labels()[1] == [UNDIVIDED]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([3.5], rel=0.01)  # type: ignore[attr-defined]


def test_all_ways_of_a_machine_are_drawn_and_told_apart() -> None:
    found = load_ways("h100")
    axes = draw_machine(found).axes[0]
    lines = [one for one in axes.get_lines() if str(one.get_label()).endswith(", single")]
    assert len(lines) == len(found.ways) > 26
    assert len({(one.get_color(), one.get_marker()) for one in lines}) == len(lines)


def test_a_figure_has_room_for_its_legend() -> None:
    figure = draw_machine(load_ways("h100"))
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.y0 >= 0.0 and box.y1 <= figure.bbox.height


def test_bars_of_an_iteration_have_all_its_parts() -> None:
    known = load("h100")
    time = iteration_seconds(estimate(4096, 20224, 1), "prcg", known)
    bars = draw_prediction("A", [1], [time]).axes[0].patches
    heights = [bar.get_height() for bar in bars]  # type: ignore[attr-defined]
    assert sum(heights) == pytest.approx(1e6 * time.seconds)
