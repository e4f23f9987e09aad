"""The text of docs/results.md: results.md beside this file, with values of records in its places.

A place is {{name}}, or {{record NAME}} for the machine, date and commit of a record.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cpufree.bench.core import noise
from tools.results import goals
from tools.results import other_tables as others
from tools.results import solver_tables as cg
from tools.results import stencil_tables as grids
from tools.results.papers import PLACES as OF_PAPERS
from tools.results.papers import ablations, messages, singles, solves
from tools.results.records import CONTINUED, FOLDER, origin

TEMPLATE = Path(__file__).with_name("results.md")
RECORDS = (
    *(cg.JITTERED_FOUR, cg.JITTERED_TWO, cg.JITTERED_LATER, cg.JITTERED_ONE),
    *(cg.REAL_TWO, cg.REAL_ONE),
    *(cg.EIGHT, cg.FOUR, cg.TWO, cg.ONE, cg.PETSC),
    *(grids.EIGHT, grids.TWO, grids.TWO_3D, grids.ONE, grids.ONE_DOUBLE),
    *(grids.WAYS_FOUR, grids.WAYS_ONE, grids.SOAK),
    *(others.PROCESSES_EIGHT, others.PROCESSES_TWO, others.SETUP, others.CPU),
    *(solves.BOTH, solves.PARTITIONS, *(record for record, *_ in messages.MACHINES)),
    *(*ablations.CG, ablations.JACOBI, ablations.LAUNCHES, ablations.SUMS),
    *singles.there(),
)
NOTES = {
    cg.JITTERED_FOUR: "Peer copies, NCCL and MPI driven by the host, without graphs, were left out "
    "for want of time. Kernels were compiled when they were first used.",
    cg.JITTERED_TWO: "Beside it, two of the 32 cores made other systems for some minutes.",
    cg.JITTERED_LATER: "Three of the 18 matrices, three rounds, before time ran out; NCCL by "
    "itself and NVSHMEM on a stream are in no other record of this suite.",
    cg.JITTERED_ONE: "Time ran out before ecology2-like, which has four values with and without "
    "jitter, on one GPU; thermomech_dM-like is from a second run.",
    cg.EIGHT: "Six matrices, for which there was time.",
    cg.FOUR: "One matrix is missing (Queen_4147-like). This record is older than the balancing of "
    "rows by the bytes of their slices.",
    cg.TWO: "This record is older than columns in runs (three unknowns per node).",
    cg.ONE: "Baselines without other libraries than NCCL.",
}


def filled(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of the page."""
    how = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return textwrap.fill(text, 100, **how)  # type: ignore[arg-type]


def few_values() -> str:
    """Return what is said of matrices with few distinct values."""
    return filled(
        "- **Few distinct values.** Meshes of the suite `paper18` are jittered: hardly two values "
        "of a matrix are equal, as in finite element matrices of real parts (HB/bcsstk18 has "
        "33,337 values, Oberwolfach/gyro_m 55,062). Records up to 2026-11-24 are of the suite that "
        "is called `structured` today (`paper18` in their commands), whose bricks are equal: six "
        f"of its 18 matrices have few distinct values, {cg.few_values()}. cpufree and baselines "
        "that share its formats store few values as codes of one byte, which saves most of the "
        "memory traffic, so these look-alikes of consph, hood, ldoor and Flan_1565 are most likely "
        "solved faster than the originals would be. Circuits do have few (AMD/G2_circuit 218); of "
        "ecology2 it is not known. Tables give the distinct values, and the means of `structured` "
        "stand without these six, too.",
        "  ",
    )


def one_by_one(records: dict[str, int], what: str = "") -> str:
    """Return a section for each record of solves: what ran, where, and the table."""
    found = []
    for name, gpus in records.items():
        ran = f"Baselines: {cg.measured_baselines(name)}. {NOTES.get(name, '')}".strip()
        sources = [origin(one).sentence() for one in (name, CONTINUED.get(name)) if one]
        item = "- " if len(sources) > 1 else ""
        found += [f"### {what}{gpus} GPU{'s' * (gpus > 1)}\n", f"{filled(ran)}\n"]
        found += ["\n".join(f"{item}{one}" for one in sources) + "\n"]
        found += [cg.against_baselines(name), f"{filled(cg.significant(name))}\n"]
    return "\n".join(found)


def petsc() -> str:
    """Return how PETSc ran, and the mean over it."""
    return filled(
        "PETSc 3.26 with its matrices on the GPUs; its MPI takes no GPU memory, so halos go "
        "through the host. Geometric mean of the speed-ups: "
        f"{cg.petsc_mean(None):.2f}× by the fastest methods, {cg.petsc_mean('cg'):.2f}× `cg` "
        "against `cg`."
    )


def billion() -> str:
    """Return what a matrix with 10⁹ rows takes."""
    run = others.billion()
    return filled(
        f"poisson1d with 10⁹ rows on eight GPUs: set-up {run.setup:.0f} s, "
        f"{run.iteration * 1e3:.2f} ms per iteration of `prcg` with Jacobi. That is "
        f"{run.by_cg:.2f} of the copy rate by the bytes that Trotter et al. 2025 count for an "
        f"iteration of CG, {run.by_method:.2f} by their rule for `prcg`, which has a dot product "
        f"and a norm more, and {run.must:.2f} by the bytes that must move (136 per row)."
    )


def two_processes() -> str:
    """Return how two processes were measured, and when their first iteration starts."""
    return filled(
        "Medians. *Sums by NVSHMEM* replaces our all-reduce by `nvshmem_double_sum_reduce`, called "
        "by one thread of each GPU. The first iteration starts "
        f"{others.first_iteration():.1f} s after the command."
    )


def records() -> str:
    """Return a line a record: machine, date, commit, command."""
    lines = []
    for name in RECORDS:
        assert (FOLDER / name).exists(), name
        one = origin(name)
        lines += [f"- {one.link()}: {one.machine}, {one.date}, commit {one.commit}"]
        lines += [f"  <br>`{one.command.replace('`', chr(39))}`"]
    return "\n".join(lines)


STENCILS = [grids.ONE, grids.TWO, grids.EIGHT, grids.TWO_3D]
PLACES: dict[str, Callable[[], object]] = {
    "few values": few_values,
    "significance": lambda: f"p > {noise.SIGNIFICANCE}",
    "least difference": lambda: f"{noise.LEAST_DIFFERENCE:.0%}",
    "few": lambda: f"{cg.FEW:,} distinct values",
    **{f"goals, {part}": partial(goals.table, part) for part in goals.PARTS},
    "who ran, jittered": partial(cg.which_ran, cg.JITTERED),
    "means, jittered": partial(cg.means, cg.JITTERED, by_values=False),
    "solves, jittered": partial(one_by_one, cg.JITTERED),
    "solves, real": partial(one_by_one, cg.REAL, "Matrices of others, "),
    "who ran, structured": partial(cg.which_ran, cg.GPUS),
    "means, structured": partial(cg.means, cg.GPUS, by_values=True),
    "solves, structured": partial(one_by_one, cg.GPUS),
    "how PETSc ran": petsc,
    "PETSc": cg.petsc,
    "phases": partial(cg.phases, cg.EIGHT),
    "products": partial(cg.products, 8),
    "floors": cg.floors,
    "stencils": partial(grids.against_baselines, STENCILS),
    "stencils, double": partial(grids.against_baselines, [grids.ONE_DOUBLE], "double"),
    "communication": grids.communication,
    "weak scaling": grids.weak_scaling_table,
    "soaks": lambda: "\n".join(f"- {line}" for line in grids.soaks()),
    "ways, 2D": partial(grids.ways, grids.WAYS_FOUR, "2D"),
    "ways, 3D": partial(grids.ways, grids.WAYS_ONE, "3D"),
    "eight processes": others.processes_eight,
    "billion": billion,
    "how two processes ran": two_processes,
    "two processes": others.processes_two,
    "set-up": others.setup,
    "CPU, large": others.cpu_large,
    "CPU, small": lambda: filled(others.cpu_small()),
    "records": records,
    **{f"papers, {name}": make for name, make in OF_PAPERS.items()},
}


def page() -> str:
    """Return docs/results.md."""

    def place(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("record "):
            return origin(name.removeprefix("record ")).sentence()
        return str(PLACES[name]()).rstrip("\n")

    return re.sub(r"\{\{(.*?)\}\}", place, TEMPLATE.read_text(encoding="utf-8"))
