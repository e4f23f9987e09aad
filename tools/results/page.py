"""The text of docs/results.md."""

from __future__ import annotations

import textwrap

from cpufree.bench.core import noise
from tools.results import goals
from tools.results import other_tables as others
from tools.results import solver_tables as cg
from tools.results import stencil_tables as grids
from tools.results.records import CONTINUED, FOLDER, origin

RECORDS = (
    *(cg.JITTERED_FOUR, cg.JITTERED_TWO, cg.JITTERED_ONE),
    *(cg.REAL_TWO, cg.REAL_ONE),
    *(cg.EIGHT, cg.FOUR, cg.TWO, cg.ONE, cg.PETSC),
    *(grids.EIGHT, grids.TWO, grids.TWO_3D, grids.ONE, grids.ONE_DOUBLE),
    *(grids.WAYS_FOUR, grids.WAYS_ONE, grids.SOAK),
    *(others.PROCESSES_EIGHT, others.PROCESSES_TWO, others.SETUP, others.CPU),
)

FEW_VALUES = textwrap.fill(
    "- **Few distinct values.** Meshes of the suite `paper18` are jittered: hardly two values of a "
    "matrix are equal, as in finite element matrices of real parts (HB/bcsstk18 has 33,337 values, "
    "Oberwolfach/gyro_m 55,062). Records up to 2026-11-24 are of the suite that is called "
    "`structured` today (`paper18` in their commands), whose bricks are equal: "
    f"six of its 18 matrices have few distinct values, {cg.few_values()}. cpufree and baselines "
    "that share its formats store few values as codes of one byte, which saves most of the memory "
    "traffic, so these look-alikes of consph, hood, ldoor and Flan_1565 are most likely solved "
    "faster than the originals would be. Circuits do have few "
    "(AMD/G2_circuit 218); of ecology2 it is not known. Tables give the distinct values, and the "
    "means of `structured` stand without these six, too.",
    100,
    subsequent_indent="  ",
    break_long_words=False,
    break_on_hyphens=False,
)

HEAD = f"""\
<!-- Made by `python -m tools.results --write` from bench/results. Do not edit. -->

# Results

Every figure on this page comes from a record in `bench/results`. Each table names its record with
machine, date and commit; the [last section](#records-and-commands) lists the commands.
`python -m tools.results --write` makes the page from the records, and a test checks that it is up
to date.

- **Matrices** are generated. *hood-like* is a look-alike of GHS_psdef/hood: the same kind of
  problem, number of rows and nonzeros per row ([generators](generators.md#the-suite-paper18)). No
  number of the original is in it.
{FEW_VALUES}
- **Times** are medians, in microseconds per iteration unless a table says otherwise. Each
  contender runs its fastest method, which stands beside its time.
- **Speed-ups** are ratios of medians within one run. *n. s.* marks those that are not significant:
  the Mann–Whitney test gives p > {noise.SIGNIFICANCE}, or the medians differ by less than
  {noise.LEAST_DIFFERENCE:.0%}.
- **Baselines** share partition, matrix formats and arithmetic with cpufree
  ([how they are built](design/baselines.md)). *Host-driven* are those whose iterations the CPU
  launches; in `graph_while` and `flags_graph` the loop runs on the devices.

[How everything is measured](benchmarking.md)
"""

GOALS = """\
## Goals: reached and missed

What the project aimed at on H200. Where a goal asks for eight GPUs and fewer were available, the
line says how many were measured.
"""

WHY_MISSED = """\
**Why the largest matrices miss 1.2× on one GPU.** The baselines use the same slices with 16-bit
columns or runs of three columns, so all contenders move about the same bytes. The persistent kernel
saves launches, which are short beside 200 to 900 µs, and keeps vectors on chip. The chip has room
for one vector of the Serena or Geo_1438 look-alike and for none of Bump_2911 or Queen_4147. The
persistent kernel also loses the time in which its blocks wait for the slowest one.

**Why the smallest miss 2.0× on one GPU.** `nccl_graph` and `graph_while` hide most launches in
graphs, and from 5 M nonzeros on an iteration is bound by memory for all contenders.
"""

SOLVERS = """\
## Conjugate gradients against host-driven solvers

Double precision, no preconditioner, 100 iterations, `cpufree bench cg`.

### Geometric means: suite `paper18`

Over the fastest of peer copies, NCCL and MPI, each driven by the host without graphs; over the
fastest of all host-driven baselines, to which NCCL in graphs belongs; and over the fastest of all
baselines. *Fastest* gives each side its fastest method; the other columns compare both sides by the
same method. Only those baselines count that ran:
"""

STRUCTURED = f"""\
## Suite `structured`: equal bricks, few distinct values

Rows *many values* leave out matrices with fewer than {cg.FEW:,} distinct values.

### Geometric means

Baselines that ran:
"""

NOTES = {
    cg.JITTERED_FOUR: (
        "Peer copies, NCCL and MPI driven by the host, without graphs, were left out for want of "
        "time. Kernels were compiled when they were first used."
    ),
    cg.JITTERED_TWO: "Beside it, two of the 32 cores made other systems for some minutes.",
    cg.JITTERED_ONE: (
        "Time ran out before ecology2-like, which has four values with and without jitter, on one "
        "GPU; thermomech_dM-like is from a second run."
    ),
    cg.REAL_TWO: "",
    cg.REAL_ONE: "",
    cg.EIGHT: "Six matrices, for which there was time.",
    cg.FOUR: (
        "One matrix is missing (Queen_4147-like). This record is older than the "
        "balancing of rows "
        "by the bytes of their slices."
    ),
    cg.TWO: "This record is older than columns in runs (three unknowns per node).",
    cg.ONE: "Baselines without other libraries than NCCL.",
}


def page() -> str:
    """Return docs/results.md."""
    parts = [HEAD, *_goals(), *_solvers(), *_details(), *_stencils(), *_others(), *_records()]
    return "\n".join(parts)


def _goals() -> list[str]:
    found = [GOALS]
    for title, table in goals.tables():
        found += [f"### {title}\n", table]
        found += [WHY_MISSED] if title.startswith("Products") else []
    return found


def _section(title: str, records: list[str], text: str, table: str) -> list[str]:
    item = "- " if len(records) > 1 else ""
    origins = "\n".join(f"{item}{origin(name).sentence()}" for name in records)
    return [f"{title}\n", *([f"{_filled(text)}\n"] if text else []), f"{origins}\n", table]


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _one_by_one(records: dict[str, int], what: str = "") -> list[str]:
    found = []
    for name, gpus in records.items():
        title = f"### {what}{gpus} GPU{'s' * (gpus > 1)}"
        text = f"Baselines: {cg.measured_baselines(name)}. {NOTES[name]}".strip()
        table = cg.against_baselines(name)
        sources = [one for one in (name, CONTINUED.get(name)) if one]
        found += [*_section(title, sources, text, table), f"{_filled(cg.significant(name))}\n"]
    return found


def _solvers() -> list[str]:
    found = [SOLVERS, cg.which_ran(cg.JITTERED), cg.means(cg.JITTERED, by_values=False)]
    found += _one_by_one(cg.JITTERED) + _one_by_one(cg.REAL, "Matrices of others, ")
    found += [STRUCTURED, cg.which_ran(cg.GPUS), cg.means(cg.GPUS, by_values=True)]
    found += _one_by_one(cg.GPUS)
    text = (
        "PETSc 3.26 with its matrices on the GPUs; its MPI takes no GPU memory, so halos "
        "go through the "
        "host. Geometric mean of the speed-ups: "
        f"{cg.petsc_mean(None):.2f}× by the fastest methods, {cg.petsc_mean('cg'):.2f}× "
        f"`cg` against "
        "`cg`."
    )
    return found + _section("### PETSc, 2 GPUs", [cg.PETSC], text, cg.petsc())


def _details() -> list[str]:
    text = (
        "From clocks in the kernel, mean of all blocks: microseconds of an iteration. The clocks "
        "themselves take time, so the sum exceeds the time measured without them."
    )
    found = _section(
        "## Where the time of an iteration goes", [cg.EIGHT], text, cg.phases(cg.EIGHT)
    )
    text = (
        "One GPU, eight largest matrices, double precision. The product is timed by "
        "clocks in the "
        "kernel during a solve; cuSPARSE's three CSR algorithms by themselves. Bytes are "
        "those of CSR "
        "with x and y: 12 per nonzero and 20 per row. Shares above 1 come from "
        "compressed columns "
        "and values ([how](design/spmv.md))."
    )
    found += _section("## Sparse matrix-vector product", [cg.ONE], text, cg.products(8))
    text = (
        "*Floor* is the time of the bytes of an iteration (CSR: 12 z + 4 n; ten passes "
        "over vectors: "
        "80 n) at the copy rate of the record. A ratio below 1 means that columns or values take "
        "less, or that vectors or the matrix stay on chip."
    )
    return found + _section("## Floors", [cg.ONE, cg.TWO, cg.EIGHT], text, cg.floors())


def _stencils() -> list[str]:
    text = (
        "Single precision, Dirichlet boundary, microseconds per iteration with the "
        "launch of the run "
        "included (`cpufree bench stencil`). All contenders compute the same bits. On "
        "one GPU all "
        "baselines are the same kernel. A dash stands where a baseline did not run."
    )
    names = [grids.ONE, grids.TWO, grids.EIGHT, grids.TWO_3D]
    found = _section("## Stencils", names, text, grids.against_baselines(names))
    found += _section(
        "### Double precision, one GPU",
        [grids.ONE_DOUBLE],
        "",
        grids.against_baselines([grids.ONE_DOUBLE], "double"),
    )
    text = (
        "Two GPUs, single precision, microseconds per iteration. *Hidden* is "
        "1 − (full − computing alone) / communication alone."
    )
    found += _section("### Communication", [grids.TWO], text, grids.communication())
    text = "Jacobi, Dirichlet boundary, medians of four runs."
    found += _section("### Weak scaling", [grids.SOAK], text, grids.weak_scaling_table())
    found += ["### Long runs\n", *(f"- {line}" for line in grids.soaks()), ""]
    text = (
        "Fastest of the ways to hold a grid ([what they are](design/stencils.md)), "
        "measured one by "
        "one by a program that compares with the reference bit for bit; single precision. Three "
        "dimensions have been rebuilt since the four-GPU record: they are those of one GPU."
    )
    found += _section(
        "### Ways to hold a grid", [grids.WAYS_FOUR], text, grids.ways(grids.WAYS_FOUR, "2D")
    )
    return found + _section("", [grids.WAYS_ONE], "", grids.ways(grids.WAYS_ONE, "3D"))[1:]


def _others() -> list[str]:
    run = others.billion()
    text = (
        "Jacobi, least of nine solves. Between nodes values go by NVSHMEM's puts with "
        "signals, here "
        "over NVLink."
    )
    found = ["## Several processes\n"]
    found += _section("### Eight GPUs", [others.PROCESSES_EIGHT], text, others.processes_eight())
    text_of_billion = (
        f"poisson1d with 10⁹ rows on eight GPUs: set-up {run.setup:.0f} s, "
        f"{run.iteration * 1e3:.2f} ms per iteration of `prcg` with Jacobi. That is "
        f"{run.by_cg:.2f} of the copy rate by the bytes that Trotter et al. 2025 count for an "
        f"iteration of CG, {run.by_method:.2f} by their rule for `prcg`, which has a dot product "
        f"and a norm more, and {run.must:.2f} by the bytes that must move (136 per row)."
    )
    found += [f"{_filled(text_of_billion)}\n"]
    text = (
        "Medians. *Sums by NVSHMEM* replaces our all-reduce by "
        "`nvshmem_double_sum_reduce`, called "
        f"by one thread of each GPU. The first iteration starts {others.first_iteration():.1f} s "
        "after the command."
    )
    found += _section("### Two GPUs", [others.PROCESSES_TWO], text, others.processes_two())
    text = (
        "`Solver(A)` with a SciPy matrix and `Solver.update(1.5 * A)`, one GPU, medians "
        "of three, in "
        "seconds and in iterations of `prcg` with Jacobi. The bmwcra_1-like matrix and "
        "flange_hex get "
        "a new system at the update, since 1.5 A has dictionaries of other sizes."
    )
    found += _section("## Set-up and update", [others.SETUP], text, others.setup())
    text = (
        "Two cores, Jacobi, `prcg`, against `scipy.sparse.linalg.cg` with Jacobi: "
        "milliseconds per "
        "iteration, medians of seven rounds with their range. *Share of the triad* is "
        "the time in "
        "which the memory's triad moves the bytes of an iteration over the time taken; above 1, "
        "vectors stay in the cache."
    )
    found += _section("## CPU engine", [others.CPU], text, others.cpu_large())
    return [*found, f"{_filled(others.cpu_small())}\n"]


def _records() -> list[str]:
    lines = [
        "## Records and commands\n",
        "One line a record: machine, date, commit, command. `bench/results` holds more of them, "
        "which the [design pages](design/index.md) cite.\n",
    ]
    for name in RECORDS:
        assert (FOLDER / name).exists(), name
        one = origin(name)
        lines += [f"- {one.link()}: {one.machine}, {one.date}, commit {one.commit}"]
        command = one.command.replace("`", "'")
        lines += [f"  <br>`{command}`"]
    return [*lines, ""]
