"""The options of `cpufree simulate`, in the form of `cpufree.options`."""

from __future__ import annotations

from dataclasses import replace

from cpufree.options import JSON, PLOT, QUIET
from cpufree.options.schema import Option

PROGRAM_NAMES = ("message", "jacobi", "cg", "prcg", "pipecg", "allreduce", "training")
STUDIES = ("check-paper", "check-scaling", "check-measured")
USUAL_MACHINE, PAPER_MACHINE = "h200", "gpu-tn-2017"
WAY_NAMES = ("cpu", "hdn", "gds", "nccl", "tn", "proxy", "native")

PROGRAM = Option(
    "program", "choice", None,
    "What to simulate: a program, or one of the studies, whose names begin with check.",
    choices=(*PROGRAM_NAMES, *STUDIES), required=True,
)  # fmt: skip
MACHINE = Option(
    "machine", "file", None,
    f"Machine file, or the name of one that comes with cpufree. Default: {USUAL_MACHINE}; of "
    f"check-paper {PAPER_MACHINE}.",
    "machine file, or the name of [one that comes with cpufree](simulate.md#machines)",
    form="FILE", metavar="FILE", otherwise=f"`{USUAL_MACHINE}`; of `check-paper` "
    f"`{PAPER_MACHINE}`",
)  # fmt: skip
PES = Option(
    "pes", "text", "2-64",
    "Numbers of PEs: 2-64 doubles from 2 to 64, 2,6,9 are only these. check-scaling projects to "
    "the last one if it is more than 1024.",
    "numbers of PEs: `2-64` doubles from 2 to 64, `2,6,9` are only these; "
    "`check-scaling` projects to the last one if it is more than 1024",
    form="LIST", metavar="LIST",
)  # fmt: skip
WAY = Option(
    "way", "text", "nccl,native",
    "Ways of communication, with commas between: " + ", ".join(WAY_NAMES) + "; or all.",
    "[ways of communication](simulate.md#ways-of-communication), with commas between, or `all`",
    form="LIST", metavar="LIST",
)  # fmt: skip
MATRIX = Option(
    "matrix", "text", None,
    "Matrix of CG: a file, or gen:NAME?...",
    "matrix of `cg`, `prcg`, `pipecg`: a file, or `gen:NAME?...`",
    form="SOURCE", metavar="SOURCE", otherwise="a coarse model, see `--rows`",
)  # fmt: skip
ROWS = Option(
    "rows", "count", 10_000_000, "Rows of a coarse model of a matrix.",
    "rows of a [coarse model](simulate.md#halos), where no matrix is given", least=1, form="N",
)  # fmt: skip
ENTRIES = replace(
    ROWS, name="entries", default=70_000_000, help="Entries of that model.",
    meaning="entries of that model",
)  # fmt: skip
DIMENSIONS = Option(
    "dimensions", "count", 3, "Dimensions of that model.", "dimensions of that model",
    least=1, most=3, form="N",
)  # fmt: skip
POINTS = Option(
    "points", "count", 8192, "Points of the whole grid in a direction.",
    "points of the whole grid of `jacobi` in a direction", least=1, form="N",
)  # fmt: skip
BYTES = Option(
    "bytes", "text", "8000000",
    "Bytes of a message or an all-reduce; of training, of all of a step, with commas between.",
    "bytes of a `message` or an `allreduce`; of `training`, of all of a step, with commas between",
    form="LIST", metavar="LIST",
)  # fmt: skip
COMPUTE = Option(
    "compute", "number", 0.01, "Seconds of computation in a training step.",
    "seconds of computation in a step of `training`", least=0, above=True, form="SECONDS",
)  # fmt: skip
ROUNDS = Option(
    "rounds", "count", 10, "Iterations to simulate.", "iterations to simulate", least=1,
    most=10_000, form="N",
)  # fmt: skip
TIMELINE = Option(
    "timeline", "file", None,
    "Timeline of the first way and number of PEs: .json for Perfetto, or .png, .svg, .pdf.",
    "timeline of the first way and number of PEs: `.json` for [Perfetto](https://ui.perfetto.dev), "
    "or `.png`, `.svg`, `.pdf`",
    form="FILE", metavar="FILE", otherwise="none",
)  # fmt: skip
GOAL = Option(
    "goal", "file", None, "The program of the first way and number of PEs in the format GOAL.",
    "the program of the first way and number of PEs in the format GOAL of LogGOPSim and ATLAHS",
    form="FILE", metavar="FILE", otherwise="none",
)  # fmt: skip
RECORDS = Option(
    "records", "text", "bench/results", "Folder of measured records, for check-measured.",
    "folder of measured records, for `check-measured`", form="FOLDER", metavar="FOLDER",
)  # fmt: skip
SIMULATE = (
    *(MACHINE, PES, WAY, MATRIX, ROWS, ENTRIES, DIMENSIONS, POINTS, BYTES, COMPUTE, ROUNDS),
    replace(PLOT, help="Time and efficiency over the number of PEs.",
            meaning="time and efficiency over the number of PEs; of `check-paper`, the figures"),
    *(TIMELINE, GOAL, RECORDS, JSON, QUIET),
)  # fmt: skip
TABLES = {"simulate": SIMULATE}
"""By the names of the tables in docs/cli.md."""
