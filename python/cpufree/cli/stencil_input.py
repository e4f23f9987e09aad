"""First values of `cpufree stencil`, box by box: a process reads or makes what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from cpufree.cli.option_types import refuse
from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.options import stencil as stencil_options
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.stencil.grid_input import Box, GridValues

FORM = "such as 8192x8192, 64x48x32 or 256^3"


@dataclass(frozen=True)
class FirstValues:
    """What --init, --grid and --precision ask for."""

    init: str
    dims: int
    shape: tuple[int, ...] | None
    """None: that of the file."""
    precision: type[np.float32] | type[np.float64] | None

    def open(self) -> GridValues:
        """Return the values; of a file, the size alone has been read.

        Raises:
            InvalidInputError: the file is no grid of real numbers. OSError: it cannot be read.
        """
        from cpufree.stencil.grid_input import GridValues  # it loads SciPy: not for --help

        dtype = np.dtype(self.precision or np.float64)
        if self.shape is None:
            return self._of_file(Path(self.init))
        shape = self.shape
        name, _, seed = self.init.partition(":")
        if name == "random":
            return GridValues(
                "--init", shape, dtype, function=lambda box: random(int(seed), shape, dtype, box)
            )
        return GridValues("--init", shape, dtype, function=lambda box: hot_wall(dtype, box))

    def _of_file(self, path: Path) -> GridValues:
        from cpufree.matrix.io.npy import map_npy
        from cpufree.stencil.grid_input import GridValues

        try:
            values = map_npy(path)
        except FileFormatError:
            raise
        except (ValueError, EOFError) as error:
            raise InvalidInputError(f"cannot read '{path}' as .npy: {error}") from None
        if values.ndim != self.dims:
            raise InvalidInputError(
                f"'{path}' has {counted(values.ndim, 'dimension')}, and jacobi{self.dims}d takes "
                f"{self.dims}"
            )
        if values.size == 0:
            raise InvalidInputError(
                f"'{path}' has shape {values.shape}: every dimension needs a point"
            )
        own = np.float32 if values.dtype.name == "float32" else np.float64
        dtype = np.dtype(self.precision or own)
        return GridValues(
            f"'{path}'", values.shape, dtype, function=lambda box: values[box], is_file=True
        )


def parse(
    init: str,
    grid: str | None,
    dims: int,
    precision: type[np.float32] | type[np.float64] | None,
) -> FirstValues:
    """Return what the options ask for; typer.BadParameter where they say nothing that can be."""
    if init.lower().endswith(".npy"):
        if grid is not None:
            raise typer.BadParameter("a file has its own grid: leave it out", param_hint="--grid")
        return FirstValues(init, dims, None, precision)
    if grid is None:
        raise typer.BadParameter(f"give the points along each axis, {FORM}", param_hint="--grid")
    shape = parse_grid(grid, dims)
    name, _, seed = init.partition(":")
    if init != "hot-wall" and not (name == "random" and seed.isascii() and seed.isdigit()):
        what = f"'{init}' is none of hot-wall, random:SEED (a number), FILE.npy"
        raise typer.BadParameter(what, param_hint="--init")
    return FirstValues(init, dims, shape, precision)


def parse_boundary(text: str, dims: int) -> str | list[str]:
    """Return --boundary as jacobi takes it; UsageError for other dimensions."""
    from cpufree.stencil.grid_input import as_boundary

    names = text.split(",") if "," in text else text
    try:
        as_boundary(names, dims)
    except InvalidInputError as error:
        raise refuse(stencil_options.BOUNDARY, text, error) from None
    return names


def parse_grid(text: str, dims: int, option: str = "--grid") -> tuple[int, ...]:
    """Return the points along each axis that a text such as 8192x8192 or 256^3 names."""
    base, power, exponent = text.partition("^")
    parts = [base] * dims if power and exponent == str(dims) else text.split("x")
    if not all(part.isascii() and part.isdigit() and 0 < len(part) < 11 for part in parts):
        raise typer.BadParameter(f"'{text}' is no grid; give one {FORM}", param_hint=option)
    if len(parts) != dims:
        what = f"'{text}' has {counted(len(parts), 'dimension')}, the stencil {dims}"
        raise typer.BadParameter(what, param_hint=option)
    shape = tuple(int(part) for part in parts)
    if min(shape) == 0:
        raise typer.BadParameter(f"'{text}' has no points along an axis", param_hint=option)
    return shape


def hot_wall(dtype: np.dtype[Any], box: Box) -> NDArray[Any]:
    """Return 1 where axis 0 begins, else 0."""
    values = np.zeros([axis.stop - axis.start for axis in box], dtype)
    if box[0].start == 0:
        values[:1] = 1.0
    return values


def random(seed: int, shape: tuple[int, ...], dtype: np.dtype[Any], box: Box) -> NDArray[Any]:
    """Return a box of what `numpy.random.default_rng(seed).random(shape, dtype)` returns.

    The generator skips the rows before the box. It makes a number of 64 bits for each float64, and
    for two values of float32.
    """
    width = int(np.prod(shape[1:], dtype=object))
    first, count = box[0].start * width, (box[0].stop - box[0].start) * width
    each = 8 // dtype.itemsize
    bits = np.random.PCG64(seed)
    bits.advance(first // each)
    values = np.random.Generator(bits).random(first % each + count, dtype=dtype.type)
    rows = values[first % each :].reshape(-1, *shape[1:])
    return np.ascontiguousarray(rows[(slice(None), *box[1:])])
