"""The fields of the simulator's machine files: unit, meaning, and which of them a file needs."""

from __future__ import annotations

from dataclasses import dataclass

TOPOLOGIES = ("star", "fat_tree", "dragonfly")


@dataclass(frozen=True)
class Field:
    """A constant of a machine."""

    unit: str
    what: str
    needed: bool = True
    """False: it describes the machine, and no time is computed from it."""
    positive: bool = False
    topology: str | None = None
    """The only topology that needs it."""


def _described(unit: str, what: str) -> Field:
    return Field(unit, what, needed=False)


def _cache(name: str, what: str) -> dict[str, Field]:
    return {
        f"{name}.bytes": _described("B", f"{what}: size"),
        f"{name}.line": _described("B", f"{what}: bytes of a line"),
        f"{name}.ways": _described("1", f"{what}: associativity"),
        f"{name}.latency": _described("cycles", f"{what}: latency"),
    }


FIELDS: dict[str, Field] = {
    # What the processors are. For the record: times are computed from the fields further below.
    "cpu.frequency": _described("1/s", "clock of the CPU"),
    "cpu.width": _described("1", "instructions that a core can issue in a cycle"),
    "cpu.cores": _described("1", "cores of a node"),
    **_cache("cpu.l1", "first-level cache of a core, for data and for instructions"),
    **_cache("cpu.l2", "second-level cache of a core"),
    **_cache("cpu.l3", "third-level cache"),
    "memory.channels": _described("1", "channels to memory"),
    "memory.rate": _described("1/s", "transfers of 8 bytes in a second on each"),
    "gpu.frequency": _described("1/s", "clock of the GPU"),
    "gpu.units": _described("1", "compute units, or multiprocessors"),
    **_cache("gpu.l1", "data cache of a compute unit"),
    **_cache("gpu.instructions", "instruction cache"),
    **_cache("gpu.l2", "second-level cache of the GPU"),
    # Kernels.
    "gpu.launch": Field("s", "from the launch of a kernel to its first instruction"),
    "gpu.teardown": Field("s", "from the last instruction of a kernel to its end"),
    "gpu.least": Field("s", "least time that a phase of computation takes on all of a GPU"),
    "gpu.sync": Field("s", "synchronization of a whole GPU inside a kernel"),
    "gpu.bandwidth": Field("B/s", "what a kernel reaches from memory", positive=True),
    "gpu.entries": Field("1/s", "entries of a sparse matrix that a kernel multiplies in a second, "
                         "whatever their bytes", positive=True),
    "gpu.cache_bytes": Field("B", "cache whose content outlives a kernel"),
    "gpu.cache_bandwidth": Field("B/s", "what a kernel reaches from there", positive=True),
    "gpu.chip_bytes": Field("B", "registers and shared memory, in which a persistent kernel keeps "
                            "data from one phase to the next"),
    "gpu.chip_bandwidth": Field("B/s", "what a kernel reaches from there", positive=True),
    # What a GPU does for messages.
    "gpu.fence": Field("s", "stores of all threads become visible to the network card"),
    "gpu.store": Field("s", "a store of a running kernel reaches the network card"),
    "gpu.poll": Field("s", "a running kernel sees that a message has come"),
    "gpu.doorbell": Field("s", "the front end rings the network card between two kernels"),
    "gpu.wait": Field("s", "the front end sees that a message has come, between two kernels"),
    "gpu.build": Field("s", "a kernel builds a work request and rings the network card"),
    "gpu.queue": Field("s", "a kernel hands a request over to a thread of the CPU"),
    "gpu.library": Field("s", "what a library's kernel for messages takes besides the messages"),
    # What the CPU does.
    "cpu.issue": Field("s", "a call that puts a kernel or a wait into a stream"),
    "cpu.notice": Field("s", "from the end of a kernel until the CPU knows of it"),
    "cpu.send": Field("s", "a two-sided send: build the packet, ring the network card"),
    "cpu.recv": Field("s", "a two-sided receive: match, complete"),
    "cpu.touch": Field("s", "the CPU reads a number that lies in the memory of a GPU"),
    "cpu.post": Field("s", "post an operation that another one will start"),
    "cpu.proxy": Field("s", "a helper thread polls its queue, builds, rings"),
    "cpu.eager": Field("B", "two-sided messages that are longer ask the receiver first"),
    "cpu.least": Field("s", "least time that a phase of computation takes on all cores"),
    "cpu.bandwidth": Field("B/s", "what all cores reach from memory", positive=True),
    "cpu.cache_bytes": Field("B", "cache that all cores share"),
    "cpu.cache_bandwidth": Field("B/s", "what all cores reach from there", positive=True),
    "cpu.reduce": Field("B/s", "reduction inside a library, bytes of result, data beyond the "
                        "core's own cache", positive=True),
    "cpu.reduce_cached": Field("B/s", "the same, data in the core's own cache", positive=True),
    "cpu.reduce_bytes": Field("B", "size of the core's own cache"),
    # Network cards.
    "nic.send": Field("s", "from the doorbell until a message leaves"),
    "nic.recv": Field("s", "from the arrival of a message until it is in memory"),
    "nic.gap": Field("s", "least time between two messages"),
    "nic.match": Field("s", "find the entry of a trigger or of a post, and count"),
    "nic.entries": Field("1", "entries of the table of triggered operations; 0: any number"),
    "nic.fifo": Field("1", "triggers that a card takes before it holds up the GPU", positive=True),
    "nic.spill": Field("s", "what an entry costs that the table has no place for"),
    # Nodes and the network.
    "node.gpus": Field("1", "GPUs of a node", positive=True),
    "node.nics": Field("1", "network cards of a node", positive=True),
    "node.latency": Field("s", "a store of one GPU reaches the memory of another one of its node"),
    "node.bandwidth": Field("B/s", "between two GPUs of a node, one way", positive=True),
    "network.bandwidth": Field("B/s", "of a network card, one way", positive=True),
    "network.link_latency": Field("s", "of a link"),
    "network.switch_latency": Field("s", "of a switch"),
    "network.leaf_nodes": Field("1", "nodes at a switch", positive=True, topology="fat_tree"),
    "network.pod_nodes": Field("1", "nodes below one switch of the second level, which reach one "
                               "another without the third", positive=True, topology="fat_tree"),
    "network.taper": Field("1", "links from nodes to a switch over those to the next level",
                           positive=True, topology="fat_tree"),
    "network.switch_nodes": Field("1", "nodes at a switch", positive=True, topology="dragonfly"),
    "network.group_nodes": Field("1", "nodes of a group", positive=True, topology="dragonfly"),
    "network.global_latency": Field("s", "of a link between groups", topology="dragonfly"),
    "network.global_bandwidth": Field("B/s", "out of a group, all links together", positive=True,
                                      topology="dragonfly"),
}  # fmt: skip
