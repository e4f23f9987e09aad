"""Who initiates, triggers and controls: what is said of contenders against their code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import ROOT

from cpufree.bench.contenders import registry
from cpufree.bench.contenders.roles import DEVICE, SOLVERS, STENCILS, Roles
from cpufree.bench.stencil import contenders as of_stencils

BASELINES = ROOT / "cpufree/baselines"
# What each baseline communicates by: the class that the drivers make.
COMMS = {
    "single_gpu": "Alone", "single_gpu_textbook": "Alone", "peer_copy": "PeerCopies",
    "nccl": "Nccl", "nccl_graph": "Nccl", "graph_while": "Packets", "nccl_mpi": "NcclOfProcesses",
    "mpi": "Mpi", "nvshmem_on_stream": "Nvshmem",
}  # fmt: skip
SLABS = {
    "copy": "CopyComm", "overlap": "OverlapComm", "p2p": "PeerStoreComm", "nccl": "CollectiveComm",
    "nccl_graph": "CollectiveComm", "flags_graph": "FlagComm", "nvshmem": "ShmemSlabComm",
}  # fmt: skip


def text_of(folder: str) -> str:
    return "\n".join(p.read_text("utf-8") for p in sorted((BASELINES / folder).glob("*.?pp")))


def class_of(name: str, text: str) -> str:
    """Return the text of a class, up to the next one that is not inside it."""
    found = re.search(rf"^class {name}\b.*?(?=^\}};)", text, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[0]


def test_every_contender_has_roles_and_no_other() -> None:
    assert set(registry.find([], None)) <= set(SOLVERS)
    assert set(of_stencils.find()) == set(STENCILS)
    assert set(COMMS) == set(registry.BASELINES)
    assert set(SLABS) == set(of_stencils.BASELINES)


@pytest.mark.parametrize(("name", "comm"), COMMS.items())
def test_kernels_of_a_solver_send_where_a_device_initiates(name: str, comm: str) -> None:
    drivers = text_of("drivers")
    body = class_of(comm, text_of("comm") + drivers)
    assert f"make_unique<{comm}<T>>" in drivers
    roles = SOLVERS[name]
    sends = "sends_from_kernels() const override { return true; }" in body
    assert sends == (roles.initiated == roles.triggered == DEVICE)
    assert (roles.initiated == "") == (comm == "Alone")
    loops = re.findall(r'driving\.loops = is\("(\w+)"\)', drivers)
    assert (name in loops) == (roles.controlled == DEVICE)


@pytest.mark.parametrize(("name", "comm"), SLABS.items())
def test_kernels_of_a_stencil_store_where_a_device_initiates(name: str, comm: str) -> None:
    body = class_of(comm, text_of("stencil"))
    assert f"make_unique<{comm}<T>>" in text_of("drivers")
    roles = STENCILS[name]
    # Either a kernel is given its neighbours' ghosts, or the host has copies made, or asks NCCL.
    stores = "StepCopies<T> copies = " in body
    copies = "this->copy(" in body or '"ncclSend"' in body
    assert stores != copies, "the code of this baseline has changed: say here how it sends"
    assert stores == (roles.initiated == roles.triggered == DEVICE)
    meets = "waits_in_kernels() const override { return true; }" in body
    assert meets == (roles.controlled == DEVICE)


def test_the_words_are_those_of_a_table() -> None:
    assert str(Roles("", "", DEVICE)) == "–, –, device"
    assert registry.DEVICE_DRIVEN == ("graph_while", "jax")
    assert of_stencils.DEVICE_DRIVEN == ("flags_graph",)
    assert Path(ROOT / "docs/benchmarking.md").read_text("utf-8").count("initiated") > 1
