"""The summary of a GPU result on the terminal: tables with a column for each number of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpu_derive import TARGET_ROWS, found
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tables import counted, new_table, ranged, styled

MOST_PROBLEMS = 4
TEXT = 110  # characters of an error that are shown; the record has all
REDUCTIONS_SHOWN = ("sum 1", "sum 2", "sum 5", "push pull 3", "exchange")

Row = dict[str, Any]


def counts_of(rows: Sequence[Row], key: str = "pes") -> list[int]:
    """Return the numbers of GPUs among rows."""
    return sorted({row[key] for row in rows})


def grid(
    title: str, rows: Sequence[Row], keys: Sequence[str], cell: Callable[[Row], str]
) -> Table | None:
    """Return a table: a line for each combination of keys, a column for each number of GPUs."""
    if not rows:
        return None
    counts = counts_of(rows)
    table = new_table(title, ", ".join(keys), *(gpus_text(pes) for pes in counts))
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows:
        line = lines.setdefault(tuple(str(row[key]) for key in keys), {})
        line[row["pes"]] = cell(row)
    for head, cells in lines.items():
        table.add_row(" ".join(head), *(cells.get(pes, "") for pes in counts))
    return table


def gpus_text(pes: int) -> str:
    """Return "1 GPU", "4 GPUs"."""
    return f"{pes} GPU" if pes == 1 else f"{pes} GPUs"


def latency_cell(row: Row) -> str:
    """Return microseconds, and target and verdict where there is a target."""
    text = ranged(row["seconds_per_iteration"], 1e6)
    if row["target_seconds"] is None:
        return text
    return f"{text} ≤ {row['target_seconds'] * 1e6:g} {styled(row['verdict'])}"


def sized_cell(row: Row) -> str:
    """Return time, speed-up and fraction of the copy rate."""
    micro = row["seconds_per_iteration"]["median"] * 1e6
    text = f"{micro:.2f} µs" if micro < 1000 else f"{micro / 1000:.2f} ms"
    if row["pes"] > 1 and row["speedup"] is not None:
        text += f" ×{row['speedup']:.2f}"
    if row["fraction_of_copy"] is not None:
        text += f" {row['fraction_of_copy']:.0%}"
    return text


def reduction_table(record: Row) -> Table | None:
    """Return the reductions by themselves; of each the quicker block size."""
    entries = found(record, "reductions")
    if not entries:
        return None
    counts = counts_of(entries, "gpus")
    table = new_table(
        "Reductions and exchanges alone, µs", "what", *(gpus_text(pes) for pes in counts)
    )
    for what in REDUCTIONS_SHOWN:
        cells = []
        for pes in counts:
            here = [e for e in entries if e["what"] == what and e["gpus"] == pes]
            wrong = any(not e["right"] for e in here)
            best = min((e["seconds"] for e in here if e["right"]), default=None)
            text = "" if best is None else f"{best * 1e6:.2f}"
            cells.append(f"{text} [red]WRONG[/red]" if wrong else text)
        table.add_row(what, *cells)
    return table


def variant_table(record: Row) -> Table | None:
    """Return, per matrix and number of GPUs, what was chosen and what would have been best."""
    rows = record["derived"]["variants"]
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["name"], row["pes"])
        time = row["seconds_per_iteration"]["median"]
        if key not in best or time < best[key]["seconds_per_iteration"]["median"]:
            best[key] = row

    def cell(row: Row) -> str:
        winner = best[row["name"], row["pes"]]
        text = f"{row['seconds_per_iteration']['median'] * 1e6:.2f}"
        if not winner["tuning"]:
            return f"{text}, nothing better"
        what = " ".join(f"{key} {value}" for key, value in winner["tuning"].items())
        time = winner["seconds_per_iteration"]["median"] * 1e6
        return f"{text}, {what}: {time:.2f} {styled(winner['against_chosen'])}"

    chosen = [row for row in rows if not row["tuning"]]
    return grid("Choices: prcg as chosen, and the best variant, µs", chosen, ("name",), cell)


def setup_table(record: Row) -> Table | None:
    """Return the set-up times of the large systems."""

    def cell(row: Row) -> str:
        return f"{row['seconds']:.2f} (first {row['first_seconds']:.2f})"

    rows = record["derived"]["setups"]
    return grid("Set-up without partition, s", rows, ("name",), cell)


def peer_table(record: Row) -> Table | None:
    """Return the other solvers."""
    rows = record["derived"]["peers"]
    if not rows:
        return None
    table = new_table("On one GPU, for scale", "solver, matrix", "µs/iteration", "of prcg's time")
    for row in rows:
        factor = f"{row['of_prcg']:.1f}" if row["of_prcg"] is not None else ""
        time = ranged(row["seconds_per_iteration"], 1e6, 1)
        table.add_row(f"{row['solver']} {row['version']}, {row['name']}", time, factor)
    return table


def problems(record: Row) -> list[str]:
    """Return what failed, then what was skipped, a line each."""
    lines = []
    for kind, style, key in (("failed", "red", "error"), ("skipped", "yellow", "why")):
        for part, result in record["parts"].items():
            for entry in result.get(kind, []):
                text = escape(" ".join(entry[key].split())[:TEXT])
                lines.append(f"[{style}]{kind}[/{style}] {part}: {entry['name']}: {text}")
            if kind == "failed":
                lines += [
                    f"[red]failed[/red] {part}: {entry['name']} on {entry['pes']}, {method}: "
                    f"{escape(' '.join(error.split())[:TEXT])}"
                    for entry in result.get("found", [])
                    for method, error in entry.get("failed", {}).items()
                ]
    return lines


def headline(record: Row) -> str:
    """Return what was measured on."""
    found_gpus = next((e["gpus"] for e in found(record, "machine") if "gpus" in e), {})
    names = sorted({gpu["name"] for gpu in found_gpus.get("listed", [])})
    name = ", ".join(names) or record["engine"]
    rates = record["derived"]["copy_bytes_per_second"]
    copy = rates.get("1")
    parts = [f"{len(record['devices'])} × {name}", record["date"][:10]]
    if found_gpus.get("driver"):
        parts.append(f"driver {found_gpus['driver']}")
    if found_gpus.get("links"):
        links = {link: n for link, n in found_gpus["links"].items() if link != "X"}  # X: itself
        parts.append(", ".join(f"{n} × {link}" for link, n in links.items()))
    if copy:
        parts.append(f"copy {copy / 1e9:.0f} GB/s per GPU")
    return "; ".join(parts)


def show(record: Row, console: Console) -> None:
    """Print a summary of at most 60 lines; the record has everything."""
    derived = record["derived"]
    # Terminals narrower than the tables would cut numbers off; lines may wrap instead.
    wide = Console(file=console.file, width=max(console.width, 160), highlight=False)
    wide.print(escape(headline(record)))
    wide.print(f"µs/iteration are medians (min–max) of {record['settings']['rounds']} rounds")
    if record["quick"]:
        wide.print("[yellow]quick run: sizes are too small to say anything about speed[/yellow]")
    sweep = [row for row in derived["sweep"] if row["method"] == "prcg"]
    tables = (
        grid(
            f"Latency, µs/iteration; targets at {counted(TARGET_ROWS)} rows",
            derived["latency"],
            ("name", "method"),
            latency_cell,
        ),
        reduction_table(record),
        grid("Sizes, prcg: speed-up, share of the copy rate", sweep, ("name",), sized_cell),
        grid(
            "Large: speed-up, share of the copy rate",
            derived["large"],
            ("name", "method"),
            sized_cell,
        ),
        setup_table(record),
        variant_table(record),
        peer_table(record),
    )
    for table in tables:
        if table is not None:
            # By itself: as the table's own it would wrap where the table is narrow.
            wide.print(table.title, style="bold")
            table.title = None
            wide.print(table)
    told = problems(record)
    for line in told[:MOST_PROBLEMS]:
        wide.print(line)
    if len(told) > MOST_PROBLEMS:
        wide.print(f"... and {len(told) - MOST_PROBLEMS} more in the record")
