"""Systems of several processes: whose GPU is whose, and what all ranks must have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_core import FakeCore, gpu

from cpufree.engines import in_processes
from cpufree.engines.asked import Asked
from cpufree.engines.digests import digest
from cpufree.engines.in_processes import choose_gpu, require_one_machine, team_for
from cpufree.env import Env
from cpufree.errors import InvalidInputError, RankFailedError, UnsupportedError

Machine = Callable[[int], None]


class FakeTeam:
    """One rank of a team whose other members say what they are told to."""

    def __init__(self, rank: int, machines: str, others: dict[int, str] | None = None) -> None:
        self.rank, self.size = rank, len(machines)
        self.members = [{"host": f"host-{name}", "machine": name} for name in machines]
        self.others = others or {}

    @property
    def local_rank(self) -> int:
        return self.ranks_here().index(self.rank)

    def ranks_here(self) -> list[int]:
        mine = self.members[self.rank]["machine"]
        return [k for k, member in enumerate(self.members) if member["machine"] == mine]

    def working(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def tell_all(self, what: str, facts: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what all say; others say that they have a GPU named after them."""
        return [
            facts if k == self.rank else {**facts, "uuid": self.others.get(k, f"gpu of {k}")}
            for k in range(self.size)
        ]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that puts GPUs into this machine."""

    def make(count: int) -> None:
        gpus = [{**gpu(k), "uuid": f"uuid {k}"} for k in range(count)]
        monkeypatch.setattr("cpufree._core", FakeCore(gpus))

    return make


def chosen(team: Any, **asked: Any) -> int:
    return choose_gpu(team, "nvshmem", Asked(engine="nvshmem", **asked), Env())[0].index


def test_each_rank_takes_the_gpu_of_its_number_on_its_machine(machine: Machine) -> None:
    machine(4)
    assert [chosen(FakeTeam(rank, "aabb")) for rank in range(4)] == [0, 1, 0, 1]


def test_all_ranks_know_the_gpus_of_all(machine: Machine) -> None:
    machine(2)
    own, everybody = choose_gpu(FakeTeam(1, "aa"), "nvshmem", Asked(engine="nvshmem"), Env())  # type: ignore[arg-type]
    assert everybody[1] == own
    assert [gpu.uuid for gpu in everybody] == ["gpu of 0", "uuid 1"]


def test_a_rank_that_is_shown_one_gpu_takes_it(machine: Machine) -> None:
    machine(1)
    assert chosen(FakeTeam(3, "aaaa")) == 0


def test_gpus_that_are_named_are_taken_in_their_order(machine: Machine) -> None:
    machine(4)
    assert chosen(FakeTeam(1, "aa"), gpus=[3, 2]) == 2


def test_ranks_that_are_shown_gpus_of_their_own_take_one_of_them(machine: Machine) -> None:
    machine(2)
    assert [chosen(FakeTeam(rank, "aaaa")) for rank in range(4)] == [0, 1, 0, 1]


def test_more_ranks_than_gpus_are_refused(machine: Machine) -> None:
    machine(2)
    with pytest.raises(RankFailedError, match="rank 2 has the same GPU as rank 0"):
        chosen(FakeTeam(2, "aaa", {0: "uuid 0", 1: "uuid 1"}))


def test_two_ranks_on_one_gpu_are_named(machine: Machine) -> None:
    machine(2)
    team = FakeTeam(0, "aa", {1: "uuid 0"})
    with pytest.raises(RankFailedError, match="rank 1 has the same GPU as rank 0") as caught:
        chosen(team)
    assert caught.value.rank == 1


def test_the_cpu_engine_refuses_ranks_on_two_machines() -> None:
    require_one_machine(FakeTeam(0, "aa"))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="rank 0 is on host-a, and rank 2 on host-b"):
        require_one_machine(FakeTeam(0, "aab"))  # type: ignore[arg-type]


def test_an_engine_of_many_processes_needs_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CPUFREE_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnsupportedError, match="cpufree run -n N"):
        team_for("cpu_processes", Asked())


def test_a_number_of_pes_must_be_that_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_processes.distributed, "join", lambda: FakeTeam(0, "aa"))
    assert team_for("cpu_processes", Asked(pes=2)) is not None
    with pytest.raises(InvalidInputError, match="pes is 3, but there are 2 processes"):
        team_for("cpu_processes", Asked(pes=3))


def test_engines_of_one_process_join_nothing() -> None:
    assert team_for("cpu_threads", Asked()) is None


def test_arrays_that_differ_have_other_digests() -> None:
    a = np.arange(1000.0)
    b = a.copy()
    assert digest(a) == digest(b)
    b[567] = np.nextafter(b[567], 0.0)
    assert digest(a) != digest(b)
