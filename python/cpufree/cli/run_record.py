"""What a report in JSON says of a run, so that the same can be run again."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from cpufree import distributed
from cpufree.env import in_force
from cpufree.host import processor_name, read_text, usable_cores
from cpufree.options.schema import Option, plain


def run_record(
    words: Sequence[str], table: Sequence[Option], given: Mapping[str, Any], **resolved: Any
) -> dict[str, Any]:
    """Return version, date, host and options of a run.

    Args:
        words: of the command line, from the command on, without options.
        table: the options of the command.
        given: their values, as the command line has them.
        resolved: the values that were used where it is known.
    """
    import cpufree

    team = distributed.current()
    asked = {o.name: given[o.name] for o in table if o.required or given[o.name] != o.default}
    return {
        "cpufree": cpufree.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "host": {
            "name": platform.node(),
            "processor": processor_name(read_text("/proc/cpuinfo")),
            "cores": usable_cores(),
        },
        "processes": 1 if team is None else team.size,
        "command": ["cpufree", *words, *flags(table, asked)],
        "environment": in_force(),
        "options": {"given": asked, "resolved": {**given, **resolved}},
    }


def flags(table: Sequence[Option], asked: Mapping[str, Any]) -> list[str]:
    """Return the words of the command line that ask for these values."""
    found: list[str] = []
    for option in table:
        if option.name not in asked:
            continue
        value = asked[option.name]
        if option.kind == "switch":
            found.append(option.spelling if value else f"--no-{option.name}")
        else:
            found += [option.spelling, repr(value) if isinstance(value, float) else plain(value)]
    return found
