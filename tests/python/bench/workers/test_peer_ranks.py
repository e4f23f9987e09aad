"""Ranks that work together for PETSc, on threads instead of processes."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from paths import ROOT

from cpufree.errors import CpufreeError, InvalidInputError, UnsupportedError

pytestmark = pytest.mark.cpu_only
PEERS = ROOT / "bench" / "peers"


class Ended(Exception):
    """What MPI does to all ranks."""


class World:
    """What Ranks needs of MPI, for threads."""

    def __init__(self, size: int) -> None:
        self.size, self.arrived, self.aborted = size, [0] * size, threading.Event()
        self.barrier, self.box = threading.Barrier(size), [None] * size


class Comm:
    """A rank's communicator."""

    def __init__(self, world: World, rank: int) -> None:
        self.world, self.rank, self.size = world, rank, world.size

    def Ibarrier(self) -> Any:
        self.world.arrived[self.rank] += 1
        mine = self.world.arrived[self.rank]

        def test() -> bool:
            if self.world.aborted.is_set():
                raise Ended
            return min(self.world.arrived) >= mine

        return SimpleNamespace(Test=test)

    def allgather(self, item: Any) -> list[Any]:
        self.world.box[self.rank] = item
        self.world.barrier.wait(10)
        found = list(self.world.box)
        self.world.barrier.wait(10)
        return found

    def bcast(self, item: Any, root: int) -> Any:
        return self.allgather(item)[root]

    def Abort(self, code: int) -> None:
        self.world.aborted.set()
        raise Ended


class Work:
    """Work that goes wrong on one rank, or never ends on all others."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm

    def fine(self, number: int) -> int:
        return number + self.comm.rank

    def wrong(self, error: Exception) -> None:
        if self.comm.rank == 1:
            raise error

    def stuck(self) -> None:
        if self.comm.rank == 1:
            raise ValueError("lost")
        self.comm.world.aborted.wait(10)


def until_ended(action: Any, *arguments: Any) -> None:
    with contextlib.suppress(Ended):
        action(*arguments)


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, World]]:
    """Rank 0 of three, and their world."""
    monkeypatch.syspath_prepend(str(PEERS))
    module: ModuleType = importlib.import_module("mpi_ranks")
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    world = World(3)
    made = [module.Ranks(comm, Work(comm)) for comm in (Comm(world, rank) for rank in range(3))]
    others = [threading.Thread(target=until_ended, args=(rank.follow,)) for rank in made[1:]]
    for thread in others:
        thread.start()
    yield made[0], world
    if not world.aborted.is_set():
        made[0].dismiss()
    for thread in others:
        thread.join(10)
        assert not thread.is_alive(), "a rank goes on after the end"


def test_ranks_return_what_rank_0_found(ranks: tuple[Any, World]) -> None:
    assert ranks[0].call("fine", 4) == 4


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UnsupportedError("no"), UnsupportedError, "^no$"),
        (InvalidInputError("bad"), InvalidInputError, "^bad$"),
        (ValueError("deep"), CpufreeError, "rank 1: ValueError: deep"),
    ],
)
def test_error_of_one_rank_is_told_and_all_go_on(
    ranks: tuple[Any, World], error: Exception, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        ranks[0].call("wrong", error)
    assert ranks[0].call("fine", 1) == 1


def test_rank_that_fails_while_others_hang_ends_them_all(ranks: tuple[Any, World]) -> None:
    with pytest.raises(Ended):
        ranks[0].call("stuck")
