"""The verbs by which GPUs speak to one another, each as a kernel of its own, and their code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.hip.code import Instructions

_KERNEL = """#include "cpufree/engines/gpu_p2p/atomic.cuh"
using namespace cpufree;
using namespace cpufree::gpu_p2p;
extern "C" __global__ void run_on_gpu({parameters}) {{ {body} }}
"""


@dataclass(frozen=True)
class Verb:
    """A verb; how many stores and loads that pass caches it is to be, of so many bytes each."""

    name: str
    parameters: str
    body: str
    stores: int = 0
    loads: int = 0
    whole: int = 0
    """Instructions for a whole cache, on gfx942: of a GPU's own memory."""

    @property
    def text(self) -> str:
        return _KERNEL.format(parameters=self.parameters, body=self.body)

    def faults(self, code: Instructions) -> list[str]:
        """Return what is not as it is to be. What else a kernel stores is its own result."""
        far = "sc0 sc1" if code.architecture == "gfx942" else ""
        found = []
        stores = [n for n in code.lines if re.match(r"(global|flat)_store", n)]
        loads = [n for n in code.lines if re.match(r"(global|flat)_load", n)]
        if self.stores and (
            len(stores) != self.stores
            or any(not n.startswith("global_store") or not n.endswith(far) for n in stores)
        ):
            found.append(f"{self.name}: stores are {stores}, not {self.stores} with '{far}'")
        if self.loads and (len(loads) != self.loads or not all(code.is_far_load(n) for n in loads)):
            found.append(f"{self.name}: loads are {loads}, not {self.loads} past the caches")
        whole = code.count(r"buffer_(wbl2|inv|wbinvl1|invl2)")
        allowed = self.whole if code.architecture == "gfx942" else 0
        if whole != allowed:
            found.append(f"{self.name}: {whole} instructions for a whole cache, not {allowed}")
        return found + [f"{self.name}: {fault}" for fault in code.faults()]


# `sink` is where what was loaded goes: without flags of its own, so loads are counted alone.
VERBS = (
    Verb("value", "double* to, double value", "store_value(to, value);", stores=1),
    Verb("float", "float* to, float value", "store_value(to, value);", stores=1),
    Verb("flag", "Flag* to, Epoch epoch", "store_flag(to, epoch);", stores=1),
    Verb("look", "const Flag* from, Epoch* sink", "*sink = load_flag(from);", loads=1),
    Verb(
        "packet",
        "Packet* to, double value, unsigned tag",
        "store_packet(to, value, std::uint64_t{tag});",
        stores=2,
    ),
    Verb(
        "look-at-packet",
        "const Packet* from, Packet* sink",
        "*sink = load_packet(from);",
        loads=2,
    ),
    Verb(
        "floats",
        "FloatPacket* to, float a, float b, float c, unsigned number",
        "const float all[3] = {a, b, c}; store_packet(to, all, number);",
        stores=3,
    ),
    Verb(
        "look-at-floats",
        "const FloatPacket* from, FloatPacket* sink",
        "*sink = load_packet(from);",
        loads=3,
    ),
    Verb(
        "publish",
        "double* to, double value, Flag* flag",
        "store_value(to, value); fence_release_system(); store_flag(flag, 1);",
        stores=2,
        whole=1,
    ),
)
