"""Who initiates, triggers and controls the communication of each contender.

The words are those of Ismayilov 2023 ("GPU-Centric Communication Schemes: When CPUs Take a Back
Seat", 4.1): initiated, from where the program asks for a message, a kernel or the host; triggered,
who has the data moved; controlled, where the control flow of all GPUs is, the loop of iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

HOST, DEVICE = "host", "device"


@dataclass(frozen=True)
class Roles:
    """Who does what: HOST or DEVICE each; "" where a contender sends nothing."""

    initiated: str
    triggered: str
    controlled: str

    def __str__(self) -> str:
        """Return the three words, as tables have them."""
        return ", ".join(word or "–" for word in (self.initiated, self.triggered, self.controlled))


BY_DEVICE, BY_HOST = Roles(DEVICE, DEVICE, DEVICE), Roles(HOST, HOST, HOST)
ALONE = Roles("", "", HOST)
SOLVERS = {
    "cpufree": BY_DEVICE,
    "single_gpu": ALONE,
    "single_gpu_textbook": ALONE,
    "peer_copy": BY_HOST,
    "nccl": BY_HOST,
    "nccl_graph": BY_HOST,
    "graph_while": BY_DEVICE,
    "nccl_mpi": BY_HOST,
    "mpi": BY_HOST,
    "nvshmem_on_stream": BY_HOST,
    "scipy": ALONE,
    "cupy": ALONE,
    "jax": Roles("", "", DEVICE),
    "petsc": BY_HOST,
    "petsc_cpu": BY_HOST,
}
"""Contenders of `bench cg`."""
STENCILS = {
    "cpufree": BY_DEVICE,
    "copy": BY_HOST,
    "overlap": BY_HOST,
    "p2p": Roles(DEVICE, DEVICE, HOST),
    "nccl": BY_HOST,
    "nccl_graph": BY_HOST,
    "flags_graph": BY_DEVICE,
    "nvshmem": Roles(DEVICE, DEVICE, HOST),
    "numpy": ALONE,
}
"""Contenders of `bench stencil`. In `flags_graph` the host launches graphs, and GPUs go on by flags
of one another."""


def device_driven(roles: dict[str, Roles]) -> tuple[str, ...]:
    """Return the contenders but ours whose loop runs on the devices."""
    return tuple(n for n, one in roles.items() if one.controlled == DEVICE and n != "cpufree")
