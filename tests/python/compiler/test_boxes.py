"""Boxes with strides, against sets of points."""

from __future__ import annotations

import itertools
import random

from cpufree.compiler.passes.boxes import Box, without


def _points(box: Box) -> set[tuple[int, ...]]:
    lines = (range(first, last + 1, step) for first, last, step in box.axes)
    return set(itertools.product(*lines))


def _random_box(numbers: random.Random) -> Box:
    axes = []
    for _ in range(2):
        first, step, count = (numbers.randint(*ends) for ends in ((0, 8), (1, 4), (1, 4)))
        axes.append((first, first + step * (count - 1), step))
    return Box(tuple(axes))


def test_boxes_with_points_in_common_meet() -> None:
    numbers = random.Random(1)
    for _ in range(2000):
        one, other = _random_box(numbers), _random_box(numbers)
        assert one.meets(other) or not _points(one) & _points(other)


def test_what_is_left_of_a_box_has_all_points_that_were_not_taken() -> None:
    numbers = random.Random(2)
    exact = 0
    for _ in range(2000):
        box, taken = _random_box(numbers), _random_box(numbers)
        left = set[tuple[int, ...]]().union(*map(_points, without(frozenset({box}), taken)))
        assert _points(box) - _points(taken) <= left <= _points(box)
        exact += left == _points(box) - _points(taken)
    assert exact > 1800


def test_a_box_without_every_second_column_is_the_other_columns() -> None:
    whole, even = Box(((0, 5, 1), (0, 7, 1))), Box(((0, 5, 1), (0, 6, 2)))
    assert without(frozenset({whole}), even) == {Box(((0, 5, 1), (1, 7, 2)))}
