"""What a Solver is asked for, and where it is in: what set-ups of its matrix need to know."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy.typing as npt

from cpufree.device_arrays import cuda_device
from cpufree.distributed import Team
from cpufree.dtypes import is_complex
from cpufree.engines import in_processes
from cpufree.engines.asked import Asked
from cpufree.engines.choices import floating_or_complex
from cpufree.engines.place import named_engine
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.laps import Laps
from cpufree.partition.part_vector import PartitionLike, as_part_vector
from cpufree.solvers.factors import comparable
from cpufree.solvers.forecast import ExpectedCall
from cpufree.solvers.nullspace import NullSpaceLike
from cpufree.solvers.work import SYSTEM


@dataclass(frozen=True)
class SetupOptions:
    """How a matrix is to be set up."""

    asked: Asked
    partition: PartitionLike
    reorder: str | bool
    check: bool
    dtype: npt.DTypeLike | None
    call: ExpectedCall
    partition_cache: str | os.PathLike[str] | None = None
    nullspace: NullSpaceLike = None
    pc: str = "auto"

    @property
    def method(self) -> str:
        """Of the solves, unless they name another one."""
        return self.call.method

    @property
    def checked_for(self) -> str | None:
        """The method that has to take the matrix; None: its entries are not checked."""
        return self.method if self.check else None


@dataclass(frozen=True)
class SetupContext:
    """What set-ups of one Solver have in common."""

    options: SetupOptions
    asked: Asked
    """With a PE for each part that is given, where nothing else says how many."""
    sharing: tuple[PartitionLike, str | bool]
    """Partition, an array of its own where part numbers are given, and order of rows."""
    env: Env
    named: str
    """The engine that is asked for by name, or "auto"."""
    team: Team | None

    @classmethod
    def of(cls, options: SetupOptions, laps: Laps) -> SetupContext:
        """Return the context; what is not available is reported before a large matrix is read."""
        env, asked = Env.read(), options.asked
        if options.method == "bicgstab" and options.nullspace is not None:
            raise InvalidInputError(
                "nullspace is for symmetric matrices, whose range is orthogonal to it; that of a "
                "matrix for method 'bicgstab' need not be: leave it out"
            )
        named = named_engine(SYSTEM, asked, env, cuda_device(options.call.right) is not None)
        laps.lap("start")
        team = in_processes.team_for(named, asked)
        if team is not None:
            team.agree("preconditioner", comparable(asked.tuning))
        laps.lap("join")
        with working(team):
            given = options.partition
            given = given if isinstance(given, str) else as_part_vector(given).copy()
            if team is None:  # which has a PE in each process
                asked = asked.for_partition(given, env)
        return cls(options, asked, (given, options.reorder), env, named, team)

    @property
    def of_complex(self) -> bool:
        """Whether the caller wants complex numbers, by the right-hand side or the type."""
        dtype = self.options.dtype
        asked = dtype is not None and floating_or_complex(dtype).kind == "c"
        return asked or is_complex(self.options.call.right)

    @property
    def rhs_gpu(self) -> int | None:
        """The GPU of the right-hand side; None: it is on the host, or not known."""
        return cuda_device(self.options.call.right)


def working(team: Team | None) -> AbstractContextManager[None]:
    """Report an error here to the others of a team: they would wait for this process."""
    return nullcontext() if team is None else team.working()
