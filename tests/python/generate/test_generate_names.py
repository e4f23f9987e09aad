"""Generators by name: specifications, refusals, suites."""

from __future__ import annotations

import csv
import tracemalloc

import numpy as np
import pytest

from cpufree.errors import InvalidInputError
from cpufree.generate import (
    describe,
    format_spec,
    from_spec,
    generate,
    names,
    parse_spec,
    suite,
    suite_names,
)
from cpufree.generate.graph import clamp
from cpufree.generate.simplices import delaunay
from cpufree.matrix.distinct import distinct_values

REQUIRED = [
    "poisson1d",
    "poisson2d",
    "poisson3d",
    "stencil27",
    "ecology2",
    "parabolic_fem",
    "apache2",
    "powergrid",
    "thermal2d",
    "stochflow3d",
    "heart",
    "geomech_tet",
    "flange_hex",
    "geomodel_hex",
    "plate_hex",
    "porous_hex",
    "crank_p2",
    "social",
]

# Rows and nonzeros of Table 3.1 of Ismayilov 2023 (thesis).
TABLE = """
Queen_4147 4147110 329499284
Bump_2911 2911419 127729899
Flan_1565 1564794 117406044
audikw_1 943695 77651847
Serena 1391349 64531701
Geo_1438 1437960 63156690
Hook_1498 1498023 60917445
ldoor 952203 46522475
StocF-1465 1465137 21005389
crankseg_2 63838 14148858
hood 220542 10768436
bmwcra_1 148770 10644002
crankseg_1 52804 10614210
G3_circuit 1585478 7660826
consph 83334 6010480
tmt_sym 726713 5080961
ecology2 999999 4995991
thermomech_dM 204316 1423116
"""


def test_all_promised_generators_exist():
    assert set(REQUIRED) <= set(names())


@pytest.mark.parametrize("name", names())
def test_description_starts_with_a_specification_of_the_defaults(name):
    first, _, rest = describe(name).partition("\n")
    assert parse_spec(first)[0] == name
    assert "Rows" in rest


@pytest.mark.parametrize(
    ("spec", "name", "params"),
    [
        ("poisson1d", "poisson1d", {}),
        ("gen:poisson1d?n=7", "poisson1d", {"n": 7}),
        (" heart ? m=30 , kind=laplace ", "heart", {"m": 30, "kind": "laplace"}),
        (
            "geomech_tet?shape=60x36x20,contrast=1e2",
            "geomech_tet",
            {"shape": (60, 36, 20), "contrast": 100.0},
        ),
        ("thermal2d?shuffle=False,holes=0", "thermal2d", {"shuffle": False, "holes": 0}),
        ("flange_hex?wall=none", "flange_hex", {"wall": None}),
        ("poisson2d?weights=1.5x1e-3", "poisson2d", {"weights": (1.5, 1e-3)}),
        ("a?b=-3,c=x,d=2x", "a", {"b": -3, "c": "x", "d": "2x"}),
    ],
)
def test_specification_is_parsed(spec, name, params):
    parsed_name, parsed = parse_spec(spec)
    assert (parsed_name, parsed) == (name, params)
    assert {key: type(value) for key, value in parsed.items()} == {
        key: type(value) for key, value in params.items()
    }


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"a": 1, "b": -2.5e-7, "c": True, "d": None, "e": "word", "f": (3, 4, 5), "g": (0.1, 2.0)},
    ],
)
def test_specification_round_trips(params):
    assert parse_spec(format_spec("name", params)) == ("name", params)


def test_from_spec_equals_generate():
    one = from_spec("geomodel_hex?ex=4,ey=3,ez=5,contrast=10.0,free_top=false")
    two = generate("geomodel_hex", ex=4, ey=3, ez=5, contrast=10.0, free_top=False)
    assert (one != two).nnz == 0


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("", "names no generator"),
        ("?n=3", "names no generator"),
        ("poisson1d?n", "'n' in .* not of the form key=value"),
        ("poisson1d?n=", "not of the form key=value"),
        ("poisson1d?=3", "not of the form key=value"),
        ("poisson1d?n=3,", "not of the form key=value"),
        ("poisson1d?n=3,n=4", "n is given twice"),
        ("poison1d", "did you mean poisson1d"),
        ("nothing_like_it", "the generators are poisson1d, poisson2d"),
        ("poisson2d?n=3", "no parameter 'n'; its parameters are nx, ny, weights"),
    ],
)
def test_malformed_specification_is_refused_with_the_remedy(spec, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        from_spec(spec)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("poisson1d?n=0", "n must be a whole number from 1 "),
        ("poisson1d?n=2.5", "n must be a whole number"),
        ("poisson1d?n=true", "n must be a whole number"),
        ("poisson2d?nx=-3", "nx must be a whole number from 1 "),
        ("poisson2d?weights=1x0", r"weights\[1\] must be a finite number above 0"),
        ("poisson2d?weights=1x2x3", "weights must be 2 positive numbers"),
        ("poisson3d?weights=nan", "weights must be 3 positive numbers"),
        ("ecology2?m=1", "m must be a whole number from 2 "),
        ("ecology2?m=3,removed=9", "removed must be a whole number from 0 to 8"),
        ("parabolic_fem?diffusion=0", "diffusion must be a finite number above 0"),
        ("parabolic_fem?diffusion=inf", "diffusion must be a finite number"),
        ("parabolic_fem?seed=-1", "seed must be a whole number from 0 "),
        ("apache2?shape=4x8", "shape must be 3 whole numbers .written 16x16x16"),
        ("geomech_tet?shape=8x8x2", r"shape\[2\] must be a whole number from 3 "),
        ("geomech_tet?penalty=0", "penalty must be a finite number above 0"),
        ("geomech_tet?mesh=hex", "mesh must be one of delaunay, bcc"),
        ("heart?kind=beating", "kind must be one of monodomain, laplace"),
        ("heart?numbering=1", "numbering must be one of shuffle, random, mesh"),
        ("thermal2d?shuffle=1", "shuffle must be true or false"),
        ("porous_hex?fraction=1.5", "fraction must be a finite number above 0 and at most 1"),
        ("powergrid?width=3", "width must be a whole number from 10 "),
        ("flange_hex?r_out=10,wall=6", "wall must be a whole number from 1 to 5"),
        ("plate_hex?jitter=0.2", "jitter must be a finite number of at least 0 and below 0.1666"),
        ("flange_hex?jitter=-0.1", "jitter must be a finite number of at least 0"),
        ("consolidation_tet?modulus=0", "modulus must be a finite number above 0"),
        ("crank_bonds?horizon=1", "horizon must be a finite number above 1.8"),
        ("social?exponent=1", "exponent must be a finite number above 1"),
        ("delaunay3d?jitter=0", "jitter must be a finite number above 0 and at most 1"),
    ],
)
def test_parameter_outside_its_range_is_refused_with_the_rule(spec, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        from_spec(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "poisson1d?n=1000000000",
        "poisson2d?nx=40000,ny=40000",
        "poisson3d?nx=100000,ny=100000,nz=100000",
        "stencil27?nx=500,ny=500,nz=500",
        "ecology2?m=50000",
        "parabolic_fem?level=20",
        "parabolic_fem?level=100000000",
        "apache2?shape=1000x1000x1000",
        "powergrid?width=30000,height=30000",
        "thermal2d?m=50000",
        "lognormal3d?nx=1000,ny=1000,nz=1000",
        "stochflow3d?m=1000",
        "heart?m=2000",
        "geomech_tet?shape=500",
        "consolidation_tet?shape=500",
        "flange_hex?r_out=2000",
        "geomodel_hex?ex=300,ey=300,ez=300",
        "plate_hex?ex=10000,ey=10000",
        "porous_hex?m=500",
        "spheres_hex?m=400",
        "crank_p2?shape=200x200x200",
        "crank_bonds?shape=200x200x200",
        "social?n=500000000",
        "delaunay3d?m=600",
    ],
)
def test_size_beyond_32_bits_is_refused_before_anything_is_made(spec):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match="32-bit indices end at 2147483647; choose"):
            from_spec(spec)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_size_checks_cover_every_generator():
    marks = test_size_beyond_32_bits_is_refused_before_anything_is_made.pytestmark
    specs = marks[0].args[1]
    assert {parse_spec(spec)[0] for spec in specs} == set(names())


def test_huge_whole_number_is_refused():
    with pytest.raises(InvalidInputError, match="n must be a whole number"):
        generate("poisson1d", n=10**400)


def test_numpy_numbers_are_accepted():
    assert generate("poisson1d", n=np.int64(4)).shape == (4, 4)


def test_body_that_misses_its_support_is_refused():
    with pytest.raises(InvalidInputError, match="nothing solid where the body is held"):
        from_spec("porous_hex?m=4,fraction=1e-9,seed=2")


@pytest.mark.parametrize("points", [np.zeros((3, 3)), np.eye(6)[:, :3]])
def test_mesh_without_cells_is_refused(points):
    with pytest.raises(InvalidInputError, match="choose larger sizes"):
        delaunay(points, longest_edge=0.01)


@pytest.mark.parametrize("fixed", [False, True])
def test_holding_no_row_or_every_row_is_refused(fixed):
    with pytest.raises(InvalidInputError, match="hold no row or leave none free"):
        clamp(generate("poisson1d", n=3), np.full(3, fixed))


def test_suites_are_listed():
    paper = ["paper18", "paper18-small", "structured", "structured-small"]
    assert suite_names() == [*paper, "poisson1d", "heart", "amg12", "amg12-small", "consolidation"]


def test_amg12_has_the_same_generators_in_both_sizes():
    full, small = suite("amg12"), suite("amg12-small")
    assert len(full) == 12
    assert [entry.generator for entry in small] == [entry.generator for entry in full]
    assert all(entry.rows <= 300_000 for entry in small)


def test_unknown_suite_is_refused_with_the_list():
    with pytest.raises(InvalidInputError, match="the suites are paper18, paper18-small"):
        suite("paper19")


def test_paper18_imitates_every_matrix_of_the_table_within_ten_percent():
    table = {
        name: (int(rows), int(nnz))
        for name, rows, nnz in csv.reader(TABLE.split("\n")[1:-1], delimiter=" ")
    }
    assert [entry.name for entry in suite("paper18")] == [f"{name}-like" for name in table]
    for entry in suite("paper18"):
        rows, nnz = table[entry.name.removesuffix("-like")]
        assert entry.rows == pytest.approx(rows, rel=0.1), entry.name
        assert entry.nnz == pytest.approx(nnz, rel=0.1), entry.name


def test_paper18_small_has_the_same_generators_at_no_more_than_100k_rows():
    full, small = suite("paper18"), suite("paper18-small")
    assert [entry.generator for entry in small] == [entry.generator for entry in full]
    assert [entry.imitates for entry in small] == [entry.imitates for entry in full]
    assert all(10_000 < entry.rows <= 100_000 for entry in small)
    assert all(entry.name.endswith("-like-small") for entry in small)


@pytest.mark.parametrize("size", ["", "-small"])
def test_structured_suite_is_paper18_without_jitter(size):
    for jittered, plain in zip(suite(f"paper18{size}"), suite(f"structured{size}"), strict=True):
        assert (plain.name, plain.rows, plain.nnz) == (jittered.name, jittered.rows, jittered.nnz)
        assert plain.generator == jittered.generator and "jitter" not in plain.params
        assert {**plain.params, **jittered.params} == jittered.params
        bricks = plain.generator.endswith("_hex")
        assert (jittered.params.get("jitter", 0.0) > 0) == bricks


@pytest.mark.parametrize("size", ["", "-small"])
def test_paper18_has_many_distinct_values_where_its_originals_may_have(size):
    few = {entry.imitates for entry in suite(f"paper18{size}") if entry.distinct < 65_536}
    assert few == {"McRae/ecology2", "AMD/G3_circuit"}
    few = {entry.imitates for entry in suite(f"structured{size}") if entry.distinct < 65_536}
    assert len(few) == 6


def test_cube_of_consolidation_has_the_size_of_its_original_within_a_percent():
    entry = suite("consolidation")[1]
    assert entry.name == "Cube_Coup_dt6-like"
    assert entry.rows == pytest.approx(2_164_760, rel=0.01)
    assert entry.nnz == pytest.approx(127_206_144, rel=0.01)


def check_size(entry):
    matrix = entry.generate()
    # qhull and NumPy's random streams may differ between versions, by a few cells at most.
    random = {"heart", "stochflow3d", "geomech_tet", "crank_p2", "crank_bonds", "thermal2d"}
    tolerance = 2e-3 if entry.generator in random else 0
    assert matrix.shape[0] == pytest.approx(entry.rows, rel=tolerance)
    assert matrix.nnz == pytest.approx(entry.nnz, rel=tolerance)
    assert distinct_values(matrix.data) == pytest.approx(entry.distinct, rel=max(tolerance, 1e-3))


SMALL = [*suite("paper18-small"), suite("consolidation")[0]]
SMALL += [entry for entry in suite("structured-small") if entry not in SMALL]


@pytest.mark.few(6)
@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry.spec)
def test_small_suite_entry_has_the_stated_size(entry):
    check_size(entry)


def test_suite_of_reductions_has_the_stated_sizes():
    for entry in suite("poisson1d")[:2]:
        check_size(entry)


# The others fill up to 8 GB; their sizes were recorded from one run.
MEDIUM = [e for name in ("paper18", "heart") for e in suite(name) if e.nnz < 70_000_000]


@pytest.mark.timeout(600)
@pytest.mark.slow
@pytest.mark.parametrize("entry", MEDIUM, ids=lambda entry: entry.name)
def test_full_suite_entry_has_the_stated_size(entry):
    check_size(entry)


def test_suite_specification_makes_the_entry():
    entry = suite("paper18-small")[4]
    name, params = parse_spec(entry.spec)
    assert (name, params) == (entry.generator, dict(entry.params))
