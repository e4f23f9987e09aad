"""Look-alikes are told from the matrices that they imitate, in old records, too."""

from __future__ import annotations

import pytest

from cpufree.generate import suite
from cpufree.generate.look_alikes import Part, entry_of, made_by, parts_of, shown_name

HOOD = "plate_hex?ex=236,ey=158,holes=50"


@pytest.mark.parametrize(
    ("name", "source", "size", "shown"),
    [
        ("hood", f"gen:{HOOD}", None, "hood-like"),
        ("hood-small", "gen:plate_hex?ex=130,ey=80,seed=1", None, "hood-like-small"),
        ("hood-like", f"gen:{HOOD}", None, "hood-like"),
        ("hood", "/made/hood.npz", (212826, 11267892), "hood-like"),
        ("hood", "/made/hood.npz", None, "hood-like"),
        ("hood", "/real/hood.npz", (220542, 10768436), "hood"),
        ("hood", "/real/hood.mtx.gz", (220542, 10768436), "hood"),
        ("poisson1d-65k", "gen:poisson1d?n=65536", None, "poisson1d-65k"),
    ],
)
def test_look_alike_is_shown_by_a_name_that_says_so(name, source, size, shown):
    assert shown_name(name, source, size) == shown


def test_every_old_name_of_the_suite_is_translated():
    for entry in suite("structured"):
        old = entry.name.removesuffix("-like")
        assert shown_name(old, f"gen:{entry.spec}") == entry.name != old


def test_file_of_a_look_alike_is_traced_to_its_generator():
    assert made_by("hood", "/made/hood.npz") == f"gen:{HOOD}"
    assert made_by("hood", "/real/hood.mtx") == "/real/hood.mtx"


def test_entry_is_found_by_what_makes_it_however_it_is_written():
    entry = entry_of("gen: ecology2 ? m=1000")
    assert entry is not None and entry.name == "ecology2-like"
    assert entry_of("/real/hood.mtx") is None


def test_parts_name_the_suite_and_how_many_of_it_there_are():
    jittered = [f"gen:{entry.spec}" for entry in suite("paper18")]
    plain = [f"gen:{entry.spec}" for entry in suite("structured")]
    assert parts_of(jittered) == [Part("paper18", 18, 18)]
    assert parts_of(plain) == [Part("structured", 18, 18)]
    hearts = [f"gen:{entry.spec}" for entry in suite("heart")[:2]]
    mixed = parts_of([*plain[:8], *hearts, "/real/hood.mtx"])
    assert mixed == [Part("structured", 8, 18), Part("heart", 2, 4), Part("", 1, 1)]
