"""How far predictions of iterations, by what is known of a matrix beforehand, are from records.

Usage: python -m tools.predict_scores OUT.jsonl [MOST_NONZEROS]

Each matrix of the suites paper18 and structured in the records is generated; its bytes and what
stays on chip are estimated from a sample of rows, as `cpufree predict` does. How it is divided
among GPUs is taken from the record, as older ones were divided otherwise than today.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from cpufree import generate
from cpufree.cli.model.system_facts import undivided_facts
from cpufree.machine import of_gpu
from cpufree.matrix.load import as_csr
from cpufree.model.gathers import gathered_bytes
from cpufree.model.records import Measured, read_record
from cpufree.model.solve import SystemFacts, solve_seconds
from tools.results.records import FOLDER, write_scores

RECORDS = (
    *("cg-1x-2026-11-25", "cg-1x-rest-2026-11-25", "cg-2x-2026-11-25"),
    *("cg-1x-2026-11-24", "cg-2x-sorted-2026-11-23", "cg-4x-2026-11-26", "cg-8x-2026-11-22"),
)
MOST = 130_000_000


def divided_as(known: SystemFacts, divided: SystemFacts) -> SystemFacts:
    """Return what is known of a matrix before it is laid out, divided as the record has it."""
    return replace(
        known,
        halo_values=divided.halo_values,
        packets=divided.packets,
        imbalance=divided.imbalance,
    )


def scores(most: float) -> Iterator[dict[str, Any]]:
    """Yield a line for each solve of the records: what it took, and what was predicted."""
    cases: dict[str, list[Measured]] = defaultdict(list)
    for record in RECORDS:
        for one in read_record(FOLDER / f"{record}.jsonl"):
            cases[one.case].append(one)
    # Records before look-alikes had other values have the names of the originals.
    entries = {one.name.removesuffix("-like"): one for one in generate.suite("structured")}
    entries |= {one.name: one for one in generate.suite("paper18")}
    for case in sorted(set(cases) & set(entries), key=lambda name: entries[name].nnz):
        if entries[case].nnz > most:
            continue
        A = as_csr(generate.generate(entries[case].generator, **entries[case].params))
        gathered = gathered_bytes(A, samples=6)
        known: dict[tuple[int, str], SystemFacts] = {}  # of a matrix on some GPUs, any method
        for one in cases[case]:
            assert isinstance(one.facts, SystemFacts)
            machine, place = of_gpu(one.gpu), (one.facts.pes, one.gpu)
            if place not in known:
                known[place] = undivided_facts(A, one.facts.pes, machine, gathered)
            facts = divided_as(known[place], one.facts)
            found = solve_seconds(facts, one.method, machine, one.iterations)
            seconds = found.seconds / one.iterations
            yield {
                **{"record": one.record, "case": case, "gpu": one.gpu, "pes": one.facts.pes},
                **{"method": one.method, "seconds": one.seconds, "predicted": seconds},
                "inside": bool(found.low <= one.seconds * one.iterations <= found.high),
            }
        print(case, flush=True)


def main(out: str, most: Annotated[float, typer.Argument()] = MOST) -> None:
    """Write the record."""
    head = {"benchmark": "predictions", "command": f"python -m tools.predict_scores OUT {most:g}"}
    write_scores(out, head, list(scores(most)), "seconds")


if __name__ == "__main__":
    typer.run(main)
