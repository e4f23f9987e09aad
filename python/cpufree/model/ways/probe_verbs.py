"""What ways that kernels use do, on threads, processes and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cpufree.model.samples import MODES


@dataclass(frozen=True)
class Verb:
    """What a way does, on every engine."""

    probe: str
    """Its name in the compiled core."""
    what: str
    message: str
    """The verb of `Kind`: a get is timed as a whole, a message one way."""
    modes: tuple[str, ...]
    leads: bool = False
    """Whether what has no message is measured beside it: flags, sums, fences, contention."""


STORE_WHAT = "stored into the other PE's memory, then a flag"
VERBS = {
    "store": Verb("store-block", f"values {STORE_WHAT}", "message", MODES, leads=True),
    "packets": Verb("packets", "values that carry their own flag (LL)", "message", MODES[:3]),
    "get": Verb("get", "loads from the other PE's memory", "get", MODES[:2]),
}
GPU_VERBS = {
    **{
        f"store-{who}": Verb(f"store-{who}", f"values {STORE_WHAT}, by a {who}", "message", MODES,
                             leads=who == "block")
        for who in ("thread", "warp", "block")
    },
    "bulk": Verb("bulk", "values by bulk copies out of shared memory, then a flag", "message",
                 MODES),
    "packets": VERBS["packets"],
    "get": VERBS["get"],
}  # fmt: skip
PINNED_VERBS = {"pinned": replace(GPU_VERBS["store-block"], leads=False)}
SHARED_VERBS = {name: GPU_VERBS[name] for name in ("store-block", "bulk", "packets", "get")}
