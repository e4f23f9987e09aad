"""The tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from tables import counted, new_table, ranged, styled


def large_table(record: dict[str, Any]) -> Table:
    """Return the table of large systems, a line per method."""
    targets = record["targets"]
    table = new_table(
        f"Large systems (targets from {counted(targets['rows_from'])} rows on): "
        f"at most {targets['most_of_scipy']} of SciPy's time, "
        f"at least {targets['least_of_triad']} of the triad",
        "matrix, method",
        "ms/iteration",
        "of SciPy's time",
        "target",
        "of triad",
        "target",
        "set-up s",
    )
    for matrix in record["large"]:
        derived = matrix["derived"]
        scipy = ranged(derived["scipy_seconds_per_iteration"], 1e3)
        size = f"{counted(matrix['rows'])} rows, {counted(matrix['nnz'])} nnz"
        setup = f"{derived['setup_seconds']['median']:.2f}"
        table.add_row(f"[bold]{matrix['name']}[/bold] ({size})", "", "", "", "", "", setup)
        table.add_row(f"  scipy ({matrix['scipy_jacobi']['used']})", scipy)
        for name, method in derived["methods"].items():
            table.add_row(
                f"  {name}",
                ranged(method["seconds_per_iteration"], 1e3),
                ranged(method["ratio_to_scipy"]),
                styled(method["target_scipy"]),
                ranged(method["fraction_of_triad"]),
                styled(method["target_triad"]),
            )
    return table


def small_table(record: dict[str, Any]) -> Table:
    """Return the table of small systems, a line each."""
    table = new_table(
        f"Small systems: whole calls to rtol {record['settings']['small_rtol']:g}",
        "matrix",
        "rows",
        "iterations",
        "SciPy's",
        "ms",
        "SciPy's ms",
        "of SciPy's time",
        "verdict",
    )
    for system in record["small"]:
        head = [system["name"], str(system["rows"])]
        head += [str(system["iterations"]), str(system["scipy_iterations"])]
        if "left_out" in system:
            table.add_row(*head, "", "", "left out:", system["left_out"])
            continue
        derived = system["derived"]
        table.add_row(
            *head,
            f"{derived['cpufree_seconds']['median'] * 1e3:.2f}",
            f"{derived['scipy_seconds']['median'] * 1e3:.2f}",
            ranged(derived["ratio_to_scipy"]),
            styled(derived["against_scipy"]),
        )
    return table


def show(record: dict[str, Any], console: Console) -> None:
    """Print all results. Times are medians with (smallest–largest) of the rounds."""
    machine, triad, others = record["machine"], record["triad"], record["others_share_of_cpu"]
    console.print(
        f"{machine['cpu']}, {machine['cores']} cores; medians (min–max) of "
        f"{record['settings']['rounds']} rounds",
        highlight=False,
    )
    if record["disturbed"]:
        share = "an unknown share" if others is None else f"{others:.0%}"
        console.print(
            f"other programs took {share} of the processor: not for the record", style="yellow"
        )
    console.print(
        f"triad, {triad['threads']} threads, {triad['elements'] * 8 / 1e6:.0f} MB per array: "
        f"{ranged(triad['bytes_per_second'], 1e-9, 1)} GB/s",
        highlight=False,
    )
    if record["quick"]:
        console.print("quick run: sizes are too small to say anything about speed", style="yellow")
    # Terminals narrower than the tables would cut numbers off; lines may wrap instead.
    wide = Console(file=console.file, width=max(console.width, 150), highlight=False)
    for table in (large_table(record), small_table(record)):
        wide.print()
        wide.print(table)
