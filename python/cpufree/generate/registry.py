"""All generators by name, and what is made of a specification."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cpufree.errors import InvalidInputError
from cpufree.generate.positions import positions
from cpufree.generate.spec import format_spec, parse_spec

if TYPE_CHECKING:
    import scipy.sparse as sp

    from cpufree.generate.grid_rows import GridRows

# The module of each generator, which is loaded when it is asked for; simple ones first.
_MODULES = {
    "poisson1d": "stencils",
    "poisson2d": "stencils",
    "poisson3d": "stencils",
    "stencil27": "stencils",
    "ecology2": "stencils",
    "parabolic_fem": "stencils",
    "apache2": "stencils",
    "powergrid": "networks",
    "lognormal3d": "lognormal",
    "thermal2d": "scalar_fem",
    "stochflow3d": "scalar_fem",
    "heart": "cardiac",
    "geomech_tet": "tet_elasticity",
    "consolidation_tet": "consolidation",
    "flange_hex": "hex_elasticity",
    "geomodel_hex": "hex_elasticity",
    "plate_hex": "hex_elasticity",
    "porous_hex": "hex_elasticity",
    "spheres_hex": "hex_elasticity",
    "crank_p2": "tet_elasticity",
    "crank_bonds": "bonds",
    "social": "networks",
    "delaunay3d": "networks",
}
_BY_ROWS = ("poisson1d", "poisson2d", "poisson3d", "stencil27")


def function_of(name: str, suffix: str = "") -> Callable[..., Any]:
    """Return the function of a generator that is there; `suffix` "_rows": that of its rows."""
    module = importlib.import_module(f"cpufree.generate.{_MODULES[name]}")
    found: Callable[..., Any] = getattr(module, name + suffix)
    return found


def names() -> list[str]:
    """Names of all generators, simple ones first."""
    return list(_MODULES)


def _lookup(name: str) -> Callable[..., Any]:
    if name in _MODULES:
        return function_of(name)
    close = difflib.get_close_matches(name, _MODULES, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise InvalidInputError(
        f"there is no generator {name!r}; {hint}the generators are {', '.join(_MODULES)}"
    )


def generate(name: str, **params: object) -> sp.csr_array:
    """The matrix of generator `name` with these parameters, the others at their defaults.

    Raises InvalidInputError for a name or parameter that does not exist (listing those that
    do), for a value outside its range, and for a matrix that 32-bit indices cannot hold.
    """
    function = _lookup(name)
    _check_names(name, params)
    matrix: sp.csr_array = function(**params)
    return matrix


def with_coordinates(name: str, **params: object) -> tuple[sp.csr_array, Any]:
    """The matrix of a generator, and where its nodes are.

    Returns:
        The matrix, and coordinates of its nodes in the order of their unknowns, shape (nodes, 3):
        what `Solver` takes as `coordinates`.

    Raises InvalidInputError as generate() does, and for a generator that is none of elastic bodies
    of voxels.

    >>> A, points = with_coordinates("plate_hex", ex=8, ey=6, holes=0)
    >>> A.shape[0] == points.size
    True
    """
    with positions() as kept:
        matrix = generate(name, **params)
    if not kept:
        bodies = ", ".join(key for key, module in _MODULES.items() if module == "hex_elasticity")
        raise InvalidInputError(f"{name} gives no coordinates; these generators do: {bodies}")
    return matrix, kept[-1]


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
    if name not in _BY_ROWS:
        return None
    rows: GridRows = function_of(name, "_rows")(**params)
    return rows


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
