"""The first and the last line of a run's file: what is measured where, and how undisturbed."""

from __future__ import annotations

import dataclasses
import json
import platform
from typing import Any, Protocol, cast

from cpufree.bench.core.gpu_versions import gpu_versions, made_with
from cpufree.bench.core.lines import End, Header
from cpufree.bench.core.machine import CpuUse, describe_machine, package_version, source_state
from cpufree.bench.core.records import SCHEMA, now
from cpufree.engines import gpus


class Configuration(Protocol):
    """What is asked of a run: a dataclass that has these among others."""

    @property
    def seed(self) -> int: ...

    @property
    def gpus(self) -> tuple[int, ...] | None: ...


def make_header(benchmark: str, configuration: Configuration, command: str) -> Header:
    """Return the first line of a file of a benchmark."""
    machine = describe_machine()
    machine.pop("memory_available_bytes")  # another one each time
    used = configuration.gpus or ()
    machine["gpus"] = gpus.models(gpu for gpu in gpus.find() if gpu.index in used)
    source = source_state()
    line: Header = {
        "kind": "header",
        "benchmark": benchmark,
        "schema": SCHEMA,
        "date": now(),
        "command": command,
        "seed": configuration.seed,
        "commit": source["commit"],
        "modified": source["modified"],
        "machine": machine,
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) for name in ("cpufree", "numpy", "scipy")},
            **made_with(),
            **(gpu_versions() if used else {}),
        },
        "configuration": dataclasses.asdict(cast(Any, configuration)),
    }
    plain: Header = json.loads(json.dumps(line))  # tuples become lists, as in a file
    return plain


def make_end(use: CpuUse) -> End:
    """Return the last line: how much of the processor others took meanwhile."""
    return {"kind": "end", "date": now(), "others": use.others()}
