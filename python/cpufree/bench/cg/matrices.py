"""What a report calls the matrices of a record, and of which suite how many they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from cpufree.bench.core.lines import Header, Lines
from cpufree.generate.look_alikes import made_by, parts_of, shown_name

_OF_NO_GROUP = ("header", "rates", "ends", "finished")


def with_shown_names(lines: Lines) -> Lines:
    """Return the lines of a file with the names that matrices have today."""
    sizes = {line["case"]: (line["rows"], line["nnz"]) for line in lines.problems}
    names, cases = {}, []
    for case in lines.header["configuration"].get("cases", ()):
        name, source = case["name"], case["source"]
        names[name] = shown_name(name, source, sizes.get(name))
        source = made_by(name, source, sizes.get(name))
        cases.append({"name": names[name], "source": source})

    def renamed(line: Any) -> Any:
        return {**line, "case": names.get(line["case"], line["case"])}

    found: dict[str, Any] = {
        field.name: [renamed(line) for line in getattr(lines, field.name)]
        for field in dataclasses.fields(lines)
        if field.name not in _OF_NO_GROUP
    }
    configuration = {**lines.header["configuration"], "cases": cases}
    header: Header = {**lines.header, "configuration": configuration}
    return dataclasses.replace(lines, header=header, **found)


def sources(header: Header) -> dict[str, str]:
    """Return where each matrix that a run was asked for comes from, by name."""
    return {case["name"]: case["source"] for case in header["configuration"].get("cases", ())}


def matrices_text(found: Iterable[str]) -> str:
    """Return how many matrices there are of which suites, by their sources.

    Example:
        >>> matrices_text(["gen:ecology2?m=1000", "gen:powergrid?width=643,height=1555"])
        '2 of the 18 matrices of suite paper18'
    """
    parts: list[str] = []
    for part in parts_of(found):
        if not part.suite:
            parts.append(f"{part.count} of no suite" if parts else _counted(part.count))
        elif part.count == part.size:
            parts.append(f"all {_counted(part.size)} of suite {part.suite}")
        else:
            parts.append(f"{part.count} of the {_counted(part.size)} of suite {part.suite}")
    return " and ".join(parts)


def _counted(count: int) -> str:
    return "1 matrix" if count == 1 else f"{count} matrices"
