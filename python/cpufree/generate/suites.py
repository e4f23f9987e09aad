"""Named sets of generated matrices.

The suite paper18 stands for the 18 matrices of Table 3.1 in Ismayilov 2023, "GPU-Centric
Communication Schemes: When CPUs Take a Back Seat" (thesis, Koç University), which compares
CPU-free with CPU-controlled conjugate gradients; paper18-small has the same structures at no
more than 100,000 rows. Their meshes of bricks have jittered nodes, so that hardly two values are
equal, as in matrices of real parts. The suites structured and structured-small are the same
without jitter: equal bricks make few distinct values. The suites poisson1d, which is nothing but
reductions, heart, whose halos are irregular, and consolidation stand for matrices of Trotter et
al. 2025, "CPU- and GPU-initiated Communication Strategies for Conjugate Gradient Methods on Large
GPU Clusters", at sizes for one machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import scipy.sparse as sp

from cpufree.errors import InvalidInputError
from cpufree.generate import registry
from cpufree.generate.spec import format_spec, parse_spec
from cpufree.generate.suite_counts import DISTINCT


@dataclass(frozen=True)
class SuiteEntry:
    """One matrix of a suite.

    Attributes:
        name: of the entry; that of a look-alike is the imitated matrix's with "-like", and
            "-small" where it is smaller.
        imitates: group/name in the SuiteSparse collection, or paper/name.
        generator, params: what makes it.
        rows, nnz: of the generated matrix. Where qhull or random geometry is involved another
            version of NumPy or SciPy may change them by a little.
    """

    name: str
    imitates: str
    generator: str
    params: Mapping[str, object]
    rows: int
    nnz: int

    @property
    def distinct(self) -> int | None:
        """Distinct values of the matrix, by their bits; None where they were not counted.

        Exact where values repeat; where nearly none does it may depend on the last bits of the
        machine's arithmetic.
        """
        return DISTINCT.get(self.spec)

    @property
    def spec(self) -> str:
        """The entry as text for from_spec()."""
        return format_spec(self.generator, self.params)

    def generate(self) -> sp.csr_array:
        """The matrix."""
        return registry.generate(self.generator, **self.params)


# imitates, full size (specification, rows, nonzeros), small size (the same)
_Made = tuple[str, int, int]
_PAPER18: tuple[tuple[str, _Made, _Made], ...] = (
    (
        "Janna/Queen_4147",
        ("geomodel_hex?ex=112,ey=112,ez=112", 4139856, 329340366),
        ("geomodel_hex?ex=30,ey=30,ez=30", 75690, 5722200),
    ),
    (
        "Janna/Bump_2911",
        ("geomech_tet?shape=79x78x78,penalty=1.0,mesh=bcc", 2939724, 127848024),
        ("geomech_tet?shape=24x23x23,penalty=1.0,mesh=bcc", 81264, 3259164),
    ),
    (
        "Janna/Flan_1565",
        ("flange_hex?r_out=96,t=12,pipe=58,wall=12", 1569924, 118219716),
        ("flange_hex?r_out=30,t=5,pipe=20,wall=5", 78120, 5345352),
    ),
    (
        "GHS_psdef/audikw_1",
        ("crank_p2?shape=55x36x20", 939579, 81995409),
        ("crank_p2?shape=20x14x10", 63201, 5359293),
    ),
    (
        "Janna/Serena",
        ("geomech_tet?shape=78x78x77,seed=1", 1354347, 65670237),
        ("geomech_tet?shape=28x28x28,seed=1", 59397, 2799513),
    ),
    (
        "Janna/Geo_1438",
        ("geomech_tet?shape=78x78x79,penalty=1.0,seed=2", 1441908, 67460958),
        ("geomech_tet?shape=28x28x28,penalty=1.0,seed=2", 65856, 2809086),
    ),
    (
        "Janna/Hook_1498",
        ("geomech_tet?shape=62x62x63,penalty=1.0,mesh=bcc,seed=3", 1488540, 64161642),
        ("geomech_tet?shape=22x20x22,penalty=1.0,mesh=bcc,seed=3", 62343, 2475741),
    ),
    (
        "GHS_psdef/ldoor",
        ("plate_hex?ex=555,ey=290,holes=60", 911154, 48692052),
        ("plate_hex?ex=160,ey=95", 89082, 4691628),
    ),
    (
        "Janna/StocF-1465",
        ("stochflow3d?m=90,mesh=bcc", 1449809, 21455921),
        ("stochflow3d?m=34,mesh=bcc", 77417, 1119801),
    ),
    (
        "GHS_psdef/crankseg_2",
        ("crank_bonds?shape=44x27x20,horizon=2.73", 64806, 14195286),
        ("crank_bonds?shape=28x18x13,horizon=2.73", 17685, 3595257),
    ),
    (
        "GHS_psdef/hood",
        ("plate_hex?ex=236,ey=158,holes=50", 212826, 11267892),
        ("plate_hex?ex=130,ey=80,seed=1", 61236, 3200688),
    ),
    (
        "GHS_psdef/bmwcra_1",
        ("crank_p2?shape=38x17x9", 135303, 11623725),
        ("crank_p2?shape=20x12x8,seed=1", 43326, 3649158),
    ),
    (
        "GHS_psdef/crankseg_1",
        ("crank_bonds?shape=44x26x17,horizon=2.65", 53139, 10612323),
        ("crank_bonds?shape=28x17x11,horizon=2.65,seed=1", 14109, 2583765),
    ),
    (
        "AMD/G3_circuit",
        ("powergrid?width=643,height=1555", 1585379, 7709217),
        ("powergrid?width=150,height=363", 86310, 418712),
    ),
    (
        "Williams/consph",
        ("spheres_hex?m=36,penalty=1.0", 82899, 5916213),
        ("spheres_hex?m=28,penalty=1.0", 40407, 2817513),
    ),
    (
        "CEMW/tmt_sym",
        ("thermal2d?m=890", 722401, 5050465),
        ("thermal2d?m=280", 71489, 498431),
    ),
    (
        "McRae/ecology2",
        ("ecology2?m=1000", 999999, 4995991),
        ("ecology2?m=300", 89999, 448791),
    ),
    (
        "Botonakis/thermomech_dM",
        ("thermal2d?m=472,kind=mass,seed=1", 203526, 1421370),
        ("thermal2d?m=240,kind=mass,seed=1", 52620, 366670),
    ),
)

_POISSON1D: tuple[tuple[str, _Made], ...] = tuple(
    (f"poisson1d-{label}", (f"poisson1d?n={n}", n, 3 * n - 2))
    for label, n in (("65k", 2**16), ("1M", 2**20), ("16M", 2**24))
)
_HEART: tuple[tuple[str, _Made], ...] = (
    ("heart-104k", ("heart?m=80", 103889, 1662321)),
    ("heart-354k", ("heart?m=120", 354107, 5717835)),
    ("heart-1.2M", ("heart?m=140,mesh=bcc", 1155137, 16799721)),
    ("heart-3.4M", ("heart?m=200,mesh=bcc", 3359706, 49321040)),
)


_CONSOLIDATION: tuple[tuple[str, _Made], ...] = (
    ("Cube_Coup_dt6-like-small", ("consolidation_tet?shape=22", 91228, 5175088)),
    ("Cube_Coup_dt6-like", ("consolidation_tet?shape=64", 2147044, 126403216)),
)
# Bricks are all of one shape, unless jittered; the other meshes of the suites are irregular anyway.
_OF_BRICKS = ("geomodel_hex", "flange_hex", "plate_hex", "spheres_hex")
JITTER = 0.1


def _entry(imitates: str, made: _Made, name: str, jitter: float = 0.0) -> SuiteEntry:
    spec, rows, nnz = made
    generator, params = parse_spec(spec)
    if jitter and generator in _OF_BRICKS:
        params["jitter"] = jitter
    return SuiteEntry(name, imitates, generator, params, rows, nnz)


def _look_alikes(small: bool, jitter: float) -> list[SuiteEntry]:
    found = []
    for imitates, full_size, small_size in _PAPER18:
        name = f"{imitates.partition('/')[2]}-like" + ("-small" if small else "")
        found.append(_entry(imitates, small_size if small else full_size, name, jitter))
    return found


_SUITES = {
    "paper18": _look_alikes(small=False, jitter=JITTER),
    "paper18-small": _look_alikes(small=True, jitter=JITTER),
    "structured": _look_alikes(small=False, jitter=0.0),
    "structured-small": _look_alikes(small=True, jitter=0.0),
    "poisson1d": [_entry("Trotter 2025/poisson1d", made, name) for name, made in _POISSON1D],
    "heart": [_entry("Trotter 2025/heart15", made, name) for name, made in _HEART],
    "consolidation": [_entry("Janna/Cube_Coup_dt6", made, name) for name, made in _CONSOLIDATION],
}


def suite_names() -> list[str]:
    """Names of all suites."""
    return list(_SUITES)


def suite(name: str) -> list[SuiteEntry]:
    """The entries of a suite; InvalidInputError naming the suites if there is none of that name."""
    if name not in _SUITES:
        raise InvalidInputError(f"there is no suite {name!r}; the suites are {', '.join(_SUITES)}")
    return list(_SUITES[name])
