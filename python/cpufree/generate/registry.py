"""All generators by name, and what is made of a specification."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable

import scipy.sparse as sp

from cpufree.errors import InvalidInputError
from cpufree.generate.bonds import crank_bonds
from cpufree.generate.cardiac import heart
from cpufree.generate.consolidation import consolidation_tet
from cpufree.generate.grid_rows import GridRows
from cpufree.generate.hex_elasticity import (
    flange_hex,
    geomodel_hex,
    plate_hex,
    porous_hex,
    spheres_hex,
)
from cpufree.generate.networks import powergrid, social
from cpufree.generate.scalar_fem import stochflow3d, thermal2d
from cpufree.generate.spec import format_spec, parse_spec
from cpufree.generate.stencils import (
    apache2,
    ecology2,
    parabolic_fem,
    poisson1d,
    poisson1d_rows,
    poisson2d,
    poisson2d_rows,
    poisson3d,
    poisson3d_rows,
    stencil27,
    stencil27_rows,
)
from cpufree.generate.tet_elasticity import crank_p2, geomech_tet

_GENERATORS: dict[str, Callable[..., sp.csr_array]] = {
    function.__name__: function
    for function in (
        poisson1d,
        poisson2d,
        poisson3d,
        stencil27,
        ecology2,
        parabolic_fem,
        apache2,
        powergrid,
        thermal2d,
        stochflow3d,
        heart,
        geomech_tet,
        consolidation_tet,
        flange_hex,
        geomodel_hex,
        plate_hex,
        porous_hex,
        spheres_hex,
        crank_p2,
        crank_bonds,
        social,
    )
}


_ROWS: dict[str, Callable[..., GridRows]] = {
    "poisson1d": poisson1d_rows,
    "poisson2d": poisson2d_rows,
    "poisson3d": poisson3d_rows,
    "stencil27": stencil27_rows,
}


def names() -> list[str]:
    """Names of all generators, simple ones first."""
    return list(_GENERATORS)


def _lookup(name: str) -> Callable[..., sp.csr_array]:
    if name in _GENERATORS:
        return _GENERATORS[name]
    close = difflib.get_close_matches(name, _GENERATORS, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise InvalidInputError(
        f"there is no generator {name!r}; {hint}the generators are {', '.join(_GENERATORS)}"
    )


def generate(name: str, **params: object) -> sp.csr_array:
    """The matrix of generator `name` with these parameters, the others at their defaults.

    Raises InvalidInputError for a name or parameter that does not exist (listing those that
    do), for a value outside its range, and for a matrix that 32-bit indices cannot hold.
    """
    function = _lookup(name)
    _check_names(name, params)
    return function(**params)


def _check_names(name: str, params: Iterable[str]) -> None:
    known = inspect.signature(_lookup(name)).parameters
    for key in params:
        if key not in known:
            raise InvalidInputError(
                f"{name} has no parameter {key!r}; its parameters are {', '.join(known)}"
            )


def row_source(spec: str) -> GridRows | None:
    """The matrix of a specification as rows that are made where they are wanted; None: not so.

    The rows are those of from_spec(); there may be more of them than 32-bit indices can number.
    Errors as for generate().
    """
    name, params = parse_spec(spec)
    _check_names(name, params)
    make = _ROWS.get(name)
    return None if make is None else make(**params)


def from_spec(spec: str) -> sp.csr_array:
    """The matrix of a specification such as "flange_hex?r_out=20,t=4,pipe=10".

    Values are whole numbers, decimal numbers, true, false, none, words, or tuples of numbers
    written 60x36x20. A leading "gen:" is allowed. Errors as for generate().
    """
    name, params = parse_spec(spec)
    return generate(name, **params)


def describe(name: str) -> str:
    """The parameters of a generator with their defaults, and what it makes."""
    function = _lookup(name)
    defaults = {
        key: parameter.default for key, parameter in inspect.signature(function).parameters.items()
    }
    return f"{format_spec(name, defaults)}\n\n{inspect.getdoc(function)}"
