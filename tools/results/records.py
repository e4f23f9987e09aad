"""Where records lie, and where each comes from: machine, date, commit and command."""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cpufree.bench.cg.results import Results
from cpufree.bench.declared.measure import measurements
from cpufree.bench.stencil.results import StencilResults

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "bench/results"
LINKS = "../bench/results"  # as seen from docs/
# Runs that a second one finished, on the same kind of machine.
CONTINUED = {"cg-1x-2026-11-25.jsonl": "cg-1x-rest-2026-11-25.jsonl"}


@dataclass(frozen=True)
class Origin:
    """Provenance of one record."""

    name: str
    machine: str
    date: str
    commit: str
    command: str

    def link(self) -> str:
        """Return the Markdown link to the record."""
        return f"[{self.name}]({LINKS}/{self.name})"

    def sentence(self) -> str:
        """Return the line that stands under the heading of a table."""
        return f"{self.machine}, {self.date}, commit {self.commit}; record {self.link()}."


@cache
def solver_record(name: str) -> Results:
    """Return a record of `cpufree bench cg`, with the one that continues it."""
    return Results([FOLDER / one for one in (name, CONTINUED.get(name)) if one])


@cache
def stencil_record(name: str) -> StencilResults:
    """Return a record of `cpufree bench stencil`."""
    return StencilResults([FOLDER / name])


@cache
def json_record(name: str) -> dict[str, Any]:
    """Return a record that is one JSON object."""
    loaded: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return loaded


def newest(begin: str) -> str:
    """Return the last record, by its date, whose name begins so; "" where there is none."""
    found = [file.name for file in FOLDER.glob(f"{begin}-[0-9]*.jsonl")]
    return max(found, key=lambda name: str(json_lines(name)[0]["date"]), default="")


def json_lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a record with one JSON object a line, its header first."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def write_scores(path: str, head: dict[str, Any], lines: list[dict[str, Any]], key: str) -> None:
    """Write what was predicted beside what was measured, `key`; the header has the errors."""
    errors = [abs(one["predicted"] / one[key] - 1.0) for one in lines]
    told = {"lines": len(lines), "median": statistics.median(errors), "worst": max(errors)}
    text = "".join(json.dumps(one) + "\n" for one in [{**head, **told}, *lines])
    Path(path).write_text(text, encoding="utf-8")


@cache
def declared_lines(name: str) -> list[dict[str, Any]]:
    """Return the lines of a record of a declared benchmark; one JSON object has them inside."""
    if not name.endswith(".json"):
        return json_lines(name)
    head = json_record(name)
    return [{**head, "kind": "header"}, *head["declared"]]


def problems(name: str) -> dict[str, dict[str, Any]]:
    """Return the line `problem` of each case of a record."""
    return {line["case"]: line for line in declared_lines(name) if line["kind"] == "problem"}


def values(name: str, what: str = "seconds") -> dict[str, dict[str, list[float]]]:
    """Return what was measured, by case and contender, a value for each round."""
    return {
        case: {who: [x[what] for x in those] for who, those in of.items() if what in those[0]}
        for case, of in measurements(declared_lines(name))
    }


def medians(name: str, what: str = "seconds") -> dict[str, dict[str, float]]:
    """Return the medians of what was measured, by case and contender."""
    return {
        case: {who: statistics.median(found) for who, found in of.items()}
        for case, of in values(name, what).items()
    }


def table_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV record by the names of its columns."""
    lines = [x for x in (FOLDER / name).read_text("utf-8").splitlines() if not x.startswith("#")]
    heads = lines[0].split(",")
    return [dict(zip(heads, line.split(","), strict=True)) for line in lines[1:]]


def origin(name: str) -> Origin:
    """Return where a record comes from.

    The commit is that of bench/results/README.md, which corrects headers written by copies of a
    working tree.
    """
    suffix = Path(name).suffix
    if suffix == ".csv":
        machine, date, command = _of_comment(name)
    else:
        head = json_lines(name)[0] if suffix == ".jsonl" else json_record(name)
        machine, date = _machine(head), str(head["date"])[:10]
        command = str(head.get("command") or head.get("how"))
    commit = commits().get(name) or commits()[name.split("/")[0]]
    return Origin(name, machine, date, commit, command)


def _machine(head: dict[str, Any]) -> str:
    machine, gpus = head.get("machine"), head.get("gpus")
    if isinstance(machine, str):
        return re.sub(r"(\d) x ", r"\1 × ", machine)
    if isinstance(gpus, dict):
        listed = [gpu["name"] for gpu in gpus["listed"]]
        return f"{len(listed)} × {listed[0]}, driver {gpus['driver']}, CUDA {gpus['cuda']}"
    driver = head.get("versions", {}).get("driver")
    more = f", driver {driver}, CUDA {head['versions']['cuda_runtime']}" if driver else ""
    if isinstance(gpus, list):
        return f"{len(gpus)} × {gpus[0]}{more}"
    assert isinstance(machine, dict)
    if machine.get("gpus"):
        return f"{machine['gpus']}{more}"
    return f"{machine['cores']} cores of an {machine['cpu']}"


def _of_comment(name: str) -> tuple[str, str, str]:
    first = (FOLDER / name).read_text(encoding="utf-8").splitlines()[0]
    command, _, rest = first.removeprefix("# ").partition("; ")
    date = re.search(r"\d{4}-\d\d-\d\d", rest)
    assert date, name
    machine = rest[: date.start()].rstrip(", ")
    machine = re.sub(r"(\d) x ", r"\1 × ", machine if machine[0].isdigit() else f"1 × {machine}")
    return machine, date[0], command.split(": ", 1)[-1]


@cache
def commits() -> dict[str, str]:
    """Return the commit of each record or folder, from the table in bench/results/README.md."""
    found: dict[str, str] = {}
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 4 or not re.search(r"\d{4}-\d\d-\d\d", cells[0]):
            continue
        names, trees = cells[0].split(", "), cells[3].split("; ")
        for k, name in enumerate(names):
            found[name.rstrip("/")] = trees[k] if len(trees) == len(names) else trees[0]
    return found


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table: the first column to the left, the others to the right."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *rows]) + "\n"
