"""Tables that a command writes into pages."""

from __future__ import annotations

import pytest

from tools.results.page_tables import markdown, marks, with_tables


def test_a_table_replaces_the_one_between_its_marks_and_nothing_else() -> None:
    begin, end = marks("one")
    page = f"before\n{begin}| old |\n{end}\nafter\n"
    made = markdown(("a", "b"), [("1", "2")])
    assert with_tables(page, {"one": made}) == f"before\n{begin}{made}{end}\nafter\n"


def test_a_figure_stands_between_words_wherever_the_lines_end() -> None:
    page = "It is\nold times\nas fast, on\ntwo machines. It is old."
    made = with_tables(page, {("It is ", " times as fast"): "3.5"})
    assert made == "It is\n3.5 times\nas fast, on\ntwo machines. It is old."


def test_words_that_occur_elsewhere_are_no_place_of_a_figure() -> None:
    page = f"It is a page of words. {'x' * 80} It is 3 times as fast."
    made = with_tables(page, {("It is ", " times as fast"): "4"})
    assert made == page.replace("3", "4")


@pytest.mark.parametrize("page", ["nothing", "".join(marks("one")) * 2])
def test_a_table_without_one_place_of_its_own_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"table 'one' has [02] places"):
        with_tables(page, {"one": ""})
