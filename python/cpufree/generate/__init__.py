"""Generators of sparse symmetric positive definite matrices, by name.

>>> from cpufree.generate import generate, from_spec
>>> generate("poisson2d", nx=3, ny=2).shape
(6, 6)
>>> from_spec("poisson2d?nx=3,ny=2").shape
(6, 6)

Every generator returns a scipy.sparse.csr_array with float64 values, sorted int32 indices and
both triangles, symmetric to the bit, positive definite by construction (an energy plus at least
one support), and the same for the same parameters. docs/generators.md describes each.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpufree.generate.bonds import crank_bonds
    from cpufree.generate.cardiac import heart
    from cpufree.generate.consolidation import consolidation_tet
    from cpufree.generate.hex_elasticity import (
        flange_hex,
        geomodel_hex,
        plate_hex,
        porous_hex,
        spheres_hex,
    )
    from cpufree.generate.lognormal import lognormal3d
    from cpufree.generate.networks import delaunay3d, powergrid, social
    from cpufree.generate.registry import (
        describe,
        from_spec,
        generate,
        names,
        row_source,
        with_coordinates,
    )
    from cpufree.generate.scalar_fem import stochflow3d, thermal2d
    from cpufree.generate.spec import format_spec, parse_spec
    from cpufree.generate.stencils import (
        apache2,
        ecology2,
        parabolic_fem,
        poisson1d,
        poisson2d,
        poisson3d,
        stencil27,
    )
    from cpufree.generate.suites import SuiteEntry, suite, suite_names
    from cpufree.generate.tet_elasticity import crank_p2, geomech_tet

__all__ = [
    "SuiteEntry",
    "apache2",
    "consolidation_tet",
    "crank_bonds",
    "crank_p2",
    "delaunay3d",
    "describe",
    "ecology2",
    "flange_hex",
    "format_spec",
    "from_spec",
    "generate",
    "geomech_tet",
    "geomodel_hex",
    "heart",
    "lognormal3d",
    "names",
    "parabolic_fem",
    "parse_spec",
    "plate_hex",
    "poisson1d",
    "poisson2d",
    "poisson3d",
    "porous_hex",
    "powergrid",
    "row_source",
    "social",
    "spheres_hex",
    "stencil27",
    "stochflow3d",
    "suite",
    "suite_names",
    "thermal2d",
    "with_coordinates",
]

# Modules of names that are no generators; those of the others are in the registry.
_HOMES = {
    **dict.fromkeys(
        ("describe", "from_spec", "generate", "names", "row_source", "with_coordinates"), "registry"
    ),
    **dict.fromkeys(("format_spec", "parse_spec"), "spec"),
    **dict.fromkeys(("SuiteEntry", "suite", "suite_names"), "suites"),
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        value = importlib.import_module(f"{__name__}.registry").function_of(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
