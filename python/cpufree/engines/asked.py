"""What a call asks for, before the machine is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cpufree import options
from cpufree.engines import choices, gpus
from cpufree.env import Env, preset_shared_gpus
from cpufree.partition.part_vector import PartitionLike, count_of


@dataclass(frozen=True)
class Asked:
    """What a call asks for. Names and syntax are checked here, the machine is not looked at.

    Raises:
        InvalidInputError: an engine that is not known, or gpus that are no device numbers.
    """

    engine: str = "auto"
    gpus: Any = "auto"
    """As the user gives them; `devices` has them parsed."""
    pes: int | str = "auto"
    blocks: int | str = "auto"
    tuning: Mapping[str, Any] = field(default_factory=dict)
    """What the core is to set up besides the matrix."""
    devices: str | tuple[int, ...] = field(init=False, default="auto")
    """"auto", "all", or device numbers."""

    def __post_init__(self) -> None:
        choices.valid(options.ENGINE, self.engine)
        object.__setattr__(self, "devices", gpus.parse(self.gpus))
        if not isinstance(self.devices, str) and gpus.shared(self.devices):
            preset_shared_gpus()
        if self.pes != "auto":
            choices.count("pes", self.pes)
        if self.blocks != "auto":
            choices.count("blocks", self.blocks)

    def for_partition(self, partition: PartitionLike, env: Env) -> Asked:
        """Return the same with a PE for each part that is given, if nothing else says how many."""
        open_to_choice = self.pes == self.devices == "auto" and env.pes is None
        if isinstance(partition, str) or not open_to_choice:
            return self
        return replace(self, pes=count_of(partition))
