"""What a system takes of the memory of GPUs, before any of it is taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from cpufree import machine, options
from cpufree.arguments import Method, Order, Precision, Preconditioner
from cpufree.calls import public
from cpufree.engines import choices
from cpufree.engines.method_choice import Solve, choose_method
from cpufree.engines.partition_gain import gain_on
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.matrix.given_factor import Factor
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import MatrixLike
from cpufree.multigrid.given_levels import Levels
from cpufree.multigrid.near_nullspace import ModesGiven, ModesLike
from cpufree.partition.part_vector import PartitionLike, as_part_vector
from cpufree.solvers.factors import PreconditionerChoice, set_up_of
from cpufree.solvers.precision import single_values, solve_type
from cpufree.solvers.setup.layout import Sharing
from cpufree.solvers.setup.preparation import prepare
from cpufree.text import counted


@dataclass(frozen=True)
class GpuMemory:
    """What one GPU holds once it has solved, in bytes, by part."""

    matrix: float
    """The matrix, in the format of GPUs."""
    vectors: float
    """Of the method and the preconditioner, right-hand side and history included."""
    halo: float
    """Messages between blocks and GPUs, and lists of what is sent."""
    factors: float
    """Of the preconditioner, where it has some."""
    levels: float
    """Of multigrid, their vectors and messages included."""
    kept: float
    """From which `Solver.update` computes new levels; left out where there is no room for it."""
    pages: float
    """What all of these leave unused of the driver's pages of 2 MiB."""
    peak: float
    """The most at any time of the fastest set-up, at most. Where there is less room, a slower one
    needs no more than `total` less `kept`."""

    @property
    def total(self) -> float:
        """All that stays."""
        return self.needed + self.kept

    @property
    def needed(self) -> float:
        """What has to be free at the least."""
        parts = self.matrix + self.vectors + self.halo + self.factors + self.levels
        return parts + self.pages


@dataclass(frozen=True)
class MemoryEstimate:
    """What each GPU will hold; see `Solver.estimate`."""

    gpus: tuple[GpuMemory, ...]
    """One for each PE."""
    pc: str
    dtype: str

    @property
    def needed(self) -> float:
        """Bytes that each GPU must have free at the least."""
        return max(gpu.needed for gpu in self.gpus)

    @property
    def peak(self) -> float:
        """The most bytes of a GPU at any time of the fastest set-up."""
        return max(gpu.peak for gpu in self.gpus)

    def __str__(self) -> str:
        """Return a table of the GPUs, in 10^6 bytes."""
        parts = ["matrix", "vectors", "halo", "factors", "levels", "kept", "pages", "total", "peak"]
        shown = [p for p in parts if any(getattr(gpu, p) for gpu in self.gpus)]
        lines = [
            f"Memory of {counted(len(self.gpus), 'GPU')} in MB, {self.dtype}, pc {self.pc}:",
            "GPU" + "".join(f"{part:>11}" for part in shown),
        ]
        for k, gpu in enumerate(self.gpus):
            lines.append(f"{k:>3}" + "".join(f"{getattr(gpu, p) / 1e6:>11.4g}" for p in shown))
        return "\n".join(lines)


@public
def estimate(
    A: MatrixLike,
    *,
    pes: int = 1,
    pc: Preconditioner | Levels | Factor = "jacobi",
    pc_level: int = 1,
    near_nullspace: ModesLike = None,
    coordinates: ModesLike = None,
    unknowns: str = "auto",
    method: Method = "auto",
    maxiter: int | None = None,
    dtype: npt.DTypeLike | None = None,
    precision: Precision | None = None,
    partition: PartitionLike = "auto",
    reorder: Order = "auto",
    gpu: str = "",
    free: float = 0.0,
) -> MemoryEstimate:
    """Return what each GPU would hold of a system, before any of it is set up. No GPU is needed.

    The host lays the matrix out as GPUs would, and makes factors or levels: that takes as long as a
    set-up on the CPU.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        As `Solver` takes it.
    pes : int, default 1
        GPUs.
    pc : {"jacobi", "chebyshev", "fsai", "amg", "none"}, default "jacobi"
        Preconditioner, or what else `Solver` takes, but "auto".
    pc_level, near_nullspace, coordinates, unknowns, dtype, precision, partition, reorder
        As `Solver` takes them.
    method, maxiter
        Of the solve, as `Solver.solve` takes them.
    gpu : str, default ""
        Kind of the GPUs, as "NVIDIA H200"; "" is that of the machine file.
    free : float, default 0.0
        Bytes that each GPU has; 0: as many as it takes.

    Returns
    -------
    MemoryEstimate
        Bytes of each GPU in ``gpus``, by part; of all, ``needed`` and ``peak``; as text a table.

    Raises
    ------
    InvalidInputError
        And its kinds, for what `Solver` refuses, and pc="auto".

    Examples
    --------
    >>> A = cpufree.generate.generate("poisson2d", nx=64, ny=64)
    >>> jacobi = cpufree.Solver.estimate(A, pes=2)
    >>> len(jacobi.gpus), jacobi.needed < 2e6
    (2, True)
    >>> cpufree.Solver.estimate(A, pc="amg").needed > jacobi.needed
    True
    """
    modes = ModesGiven(near_nullspace, coordinates, unknowns)
    chosen = PreconditionerChoice(pc, pc_level, modes)
    if chosen.name == "auto":
        raise InvalidInputError(
            "pc='auto' is known once it is set up: estimate pc='jacobi' and pc='amg', between "
            "which it chooses"
        )
    pes = choices.count("pes", pes)
    asked = single_values(precision, dtype)
    whole = as_csr(A)
    if dtype is not None and choices.floating_or_complex(dtype).kind == "c":
        whole = whole.as_complex()
    matrix = prepare(whole, method, solve_type(asked, dtype)).matrix
    given = partition if isinstance(partition, str) else as_part_vector(partition)
    sharing = Sharing.of(matrix, pes, given, reorder, gain_on("cuda_p2p", gpu=gpu))
    tuning, levels_of, _ = set_up_of(chosen.tuning, matrix)
    sharing = sharing.with_whole_nodes(levels_of)
    tuning |= {
        **asked,
        "machine": machine.planner_numbers(machine.of_gpu(gpu)),
        "first_pc": chosen.name,
    }
    tuning["first_method"], _ = choose_method(method, Solve("cuda_p2p", chosen.name))
    most = (
        10 * matrix.given_shape[0] if maxiter is None else choices.valid(options.MAXITER, maxiter)
    )
    found = load_core().estimate_memory(
        matrix.indptr, matrix.indices, matrix.data, sharing.part, sharing.order, pes, int(most),
        float(free), tuning,
    )  # fmt: skip
    each = tuple(GpuMemory(**{name: float(value) for name, value in one.items()}) for one in found)
    return MemoryEstimate(each, chosen.name, matrix.given_dtype.name)
