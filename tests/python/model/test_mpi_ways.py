"""Ways of MPI: messages between two processes, what goes wrong, and what is missing and why."""

from __future__ import annotations

import shutil
import sys

import pytest
from fake_core import FakeCore

from cpufree.errors import EngineError, InvalidInputError
from cpufree.extension import has_part
from cpufree.model.measure import Plan, measure
from cpufree.model.ways import mpi_ways
from cpufree.model.ways.mpi_ways import EXTENSION, MPI_WAYS

NO_MPI = not has_part(EXTENSION) or shutil.which("mpirun") is None
needs_mpi = pytest.mark.skipif(NO_MPI, reason="MPI, or the extension that uses it, is not here")


@needs_mpi
def test_messages_of_host_memory_are_measured_and_checked() -> None:
    way = MPI_WAYS["processes-mpi"]()
    way.launcher = (*way.launcher, "--oversubscribe")
    way.open()
    try:
        for mode, size, messages in (("single", 8, 1), ("window", 1024, 16), ("send", 64, 1)):
            times = way.times(mode, size, messages, 3, 4)
            assert len(times) == 4 and all(0 < t < 10 for t in times)
        # The best of several: others may use the cores.
        assert min(way.times("single", 1 << 23, 1, 1, 5)) > min(way.times("single", 8, 1, 3, 50))
        with pytest.raises(InvalidInputError, match="messages of 12 B"):
            way.times("single", 12, 1, 0, 1)
        with pytest.raises(EngineError, match="do not fit"):  # the extension checks as well
            way.times("window", 1 << 23, 3, 0, 1)
    finally:
        way.close()


def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the extension there."""
    monkeypatch.setattr(mpi_ways, "has_part", lambda name: True)
    monkeypatch.setattr(mpi_ways, "make_part", lambda name, what: None)


@needs_mpi
def test_memory_of_gpus_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree._core", FakeCore(2))
    for name in ("host-mpi-staged", "host-mpi-direct"):
        way = MPI_WAYS[name]()
        way.launcher = (*way.launcher, "--oversubscribe")
        assert "a process of MPI says" in way.lacking()


def test_a_process_that_is_gone_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch)
    monkeypatch.setattr("cpufree._core", FakeCore(2))
    way = MPI_WAYS["host-mpi-staged"]()
    way.launcher = (sys.executable, "-c", "import sys; sys.exit(3)")
    assert way.lacking() == "way host-mpi-staged: a process of MPI is gone"


def test_all_modes_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = """
import json, sys
assert sys.argv[-3:-1] == ["staged", "0,1"]
for line in sys.stdin:
    order = json.loads(line)["order"]
    print(json.dumps({"seconds": [1e-6 + 1e-9 * order[1]] * order[4]}), flush=True)
"""
    there(monkeypatch)
    monkeypatch.setattr("cpufree._core", FakeCore(2))
    way = MPI_WAYS["host-mpi-staged"]()
    way.launcher = (sys.executable, "-c", peer)
    found = measure([way], Plan((8, 64), (), (4,), rounds=1), "test")
    assert not found.missing and {row.mode for row in found.rows} == {*way.modes}


def test_what_a_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_ways, "has_part", lambda name: False)
    assert "libopenmpi-dev" in MPI_WAYS["processes-mpi"]().lacking()
    there(monkeypatch)
    monkeypatch.setattr(mpi_ways.shutil, "which", lambda name: None)
    assert MPI_WAYS["processes-mpi"]().lacking() == "mpirun was not found"
