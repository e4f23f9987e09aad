"""The options of solves and programs: one schema for Python, command line and pages.

Of each option the schema says name, type, default, unit, range and help. The command line makes
its options of it (`cpufree.cli.option_types`), `cpufree.engines.choices.valid` checks values given
in Python, and `tools/results/option_tables.py` makes the tables in
docs/cli.md.
"""

from __future__ import annotations

from dataclasses import replace

from cpufree.options.schema import Option as Option

ENGINES = ("auto", "cpu_threads", "cuda_p2p", "cpu_processes", "nvshmem", "nccl")
PROCESSES_ON_GPUS = ("nvshmem", "nccl")
"""Engines with one process for each GPU."""
DISTRIBUTED = ("cpu_processes", *PROCESSES_ON_GPUS)
"""Engines with one process for each PE."""
LARGEST_COUNT = 2**31 - 1
MOST_PES = 1024
"""PEs, and blocks of a PE: the limit of the compiled core."""
WAIT_SECONDS = 60.0
"""Default of wait_limit: enough for an overloaded machine; a wait usually takes microseconds."""


# Where a system or a grid is solved.
ENGINE = Option(
    "engine", "choice", "auto",
    "GPUs (cuda_p2p), the CPU (cpu_threads), or auto. In several processes: a GPU for each "
    "(nvshmem, nccl), or the CPU (cpu_processes).",
    "GPUs, or the CPU; the last three work in [several processes](distributed.md); `auto` takes "
    "GPUs where they give the answer sooner "
    "([how](api.md#which-engine-and-how-many-gpus))",
    choices=ENGINES,
)  # fmt: skip
GPUS = Option(
    "gpus", "devices", "auto",
    "GPUs: auto, all, or numbers such as 0,2-5.",
    "which GPUs: CUDA's numbers, such as `0,2-5`, after `CUDA_VISIBLE_DEVICES`; `auto` takes as "
    "many as pay; PEs [share](gpus.md#several-pes-on-a-gpu) one that is named several times",
    choices=("auto", "all"), form="LIST", metavar="LIST",
)  # fmt: skip
PES = Option(
    "pes", "count", "auto",
    "Number of PEs (GPUs, or groups of threads), or auto.",
    "processing elements: GPUs, or groups of threads on the CPU",
    least=1, most=MOST_PES, form="N", takes_auto=True, metavar="N",
)  # fmt: skip
BLOCKS = Option(
    "blocks", "count", "auto",
    "Blocks per PE (threads on the CPU), or auto.",
    "blocks in each PE: threads on the CPU",
    least=1, most=MOST_PES, form="N", takes_auto=True, metavar="N",
)  # fmt: skip
TIME_LIMIT = Option(
    "time_limit", "number", None,
    "Stop after this time.",
    "stop after this time and keep the x so far",
    least=0, above=True, form="SECONDS", otherwise="none", metavar="SECONDS",
)  # fmt: skip
WAIT_LIMIT = Option(
    "wait_limit", "number", None,
    "Give up where a block waits longer for another one. Default: 60.",
    "give up, with a diagnosis, where a block waits longer for another one",
    least=0, above=True, form="SECONDS", otherwise="`60`, or `CPUFREE_WAIT_LIMIT`",
    metavar="SECONDS",
)  # fmt: skip
JSON = Option(
    "json", "file", None,
    "Report as JSON; - is stdout.",
    "report as JSON; `-` is stdout",
    form="FILE", metavar="FILE",
)  # fmt: skip
QUIET = Option(
    "quiet", "switch", False, "One line: how it ended.", "one line: how it ended", short="-q"
)

TIMINGS = Option(
    "timings", "switch", False,
    "Show where the wall time went.",
    "a bar for [every phase](api.md#where-the-time-goes), from the start of the process on",
)  # fmt: skip

# Of solves.
RHS = Option(
    "rhs", "text", "ones",
    "Right-hand side b: ones, random (fixed seed), or a file.",
    "right-hand side: all ones, standard normal numbers (fixed seed), or a file",
    choices=("ones", "random"), form="FILE",
)  # fmt: skip
X0 = Option(
    "x0", "file", None, "First guess, a file. Default: zero.", "first guess",
    form="FILE", otherwise="zero",
)  # fmt: skip
RTOL = Option(
    "rtol", "number", 1e-5,
    "Stop where ‖b - A x‖ ≤ max(rtol × ‖b‖, atol).",
    "stop where `‖b - A x‖₂ ≤ max(rtol · ‖b‖₂, atol)`, SciPy's rule",
    least=0, form="TOL", takes_infinity=True,
)  # fmt: skip
ATOL = Option(
    "atol", "number", 0.0, "See --rtol.", "absolute tolerance; see `--rtol`",
    least=0, form="TOL", takes_infinity=True,
)  # fmt: skip
MAXITER = Option(
    "maxiter", "count", None, "Most iterations. Default: 10 × rows.", "most iterations",
    least=0, form="N", otherwise="10 × rows",
)  # fmt: skip
METHOD = Option(
    "method", "choice", "auto",
    "Method; auto is prcg nearly everywhere. minres: A symmetric, perhaps indefinite; bicgstab: A "
    "not symmetric.",
    "variant of conjugate gradients; `auto` is `prcg` nearly everywhere ([which when]"
    "(solving/methods.md#what-auto-chooses)); `minres` and `bicgstab` are for [matrices "
    "that are not positive definite](solving/methods.md#matrices-that-are-not-positive-definite)",
    choices=("auto", "cg", "prcg", "pipecg", "minres", "bicgstab"),
)  # fmt: skip
PC = Option(
    "pc", "choice", "auto", "Preconditioner.",
    "preconditioner ([which when](solving/methods.md#preconditioners))",
    choices=("auto", "jacobi", "chebyshev", "fsai", "amg", "none"),
    noun="preconditioner pc",
)  # fmt: skip
PC_LEVEL = Option(
    "pc_level", "count", 1,
    "fsai: pattern of A (1), or of A², thinned (2).", least=1, most=2, form="N",
)  # fmt: skip
FACTOR = Option(
    "factor", "file", None,
    "fsai: a matrix file with G of a preconditioner M = GᵀG that was made elsewhere.",
    "fsai: G of a preconditioner M = GᵀG that was [made elsewhere]"
    "(solving/methods.md#a-factor-that-is-given), a matrix file; in place of `--pc`",
    form="FILE", otherwise="none", metavar="FILE",
)  # fmt: skip
NULLSPACE = Option(
    "nullspace", "text", None,
    "Of a singular A: constant, or a file of vectors v with A v = 0.",
    "null space of a [singular A](solving/accuracy.md#singular-systems): constants, or the vectors "
    "of a file (`.npy` of shape (n, k), or one vector as `--rhs` takes it)",
    choices=("constant",), form="FILE", otherwise="A is regular", metavar="constant|FILE",
)  # fmt: skip
NEAR_NULLSPACE = Option(
    "near_nullspace", "text", None,
    "amg: a file of vectors that A nearly maps to 0.",
    "amg: up to 6 vectors that A nearly maps to 0, for [several unknowns a "
    "node](solving/methods.md#multigrid) (`.npy` of shape (n, k), or text)",
    form="FILE", otherwise="the constant, or translations", metavar="FILE",
)  # fmt: skip
COORDINATES = Option(
    "coordinates", "text", None,
    "amg: a file of the coordinates of the nodes of an elastic body.",
    "amg: coordinates of the nodes of an [elastic body](solving/methods.md#multigrid), "
    "2 or 3 a node (`.npy` of shape (nodes, 2) or (nodes, 3), or text with a node a line)",
    form="FILE", otherwise="none", metavar="FILE",
)  # fmt: skip
UNKNOWNS = Option(
    "unknowns", "choice", "auto",
    "amg: how unknowns of a node are numbered: one after the other, or component by component.",
    "amg: how the unknowns of a node are numbered: one after the other (`by node`), or all nodes' "
    "first ones first (`by component`); `auto`: by node, if rows come in twos or threes",
    choices=("auto", "by node", "by component"),
)  # fmt: skip
SOLVES = Option(
    "solves", "count", 1,
    "Solves that are expected with this matrix: auto weighs set-up against iterations.",
    "solves that are expected with this matrix, by which `auto` weighs set-up against iterations "
    "([how](gpus.md#time-to-the-answer))",
    least=1, most=LARGEST_COUNT, form="N",
)  # fmt: skip
PARTITION = Option(
    "partition", "text", "auto",
    "Which PE has which rows: auto, metis, contiguous, rows, or a file of part numbers, one a line "
    "as METIS's programs write it, or .npy.",
    "which PE has which rows; a file has [part numbers](input.md#partitions), as METIS's programs "
    "write them, and `--pes auto` is then its number of parts",
    choices=("auto", "metis", "contiguous", "rows"), form="FILE", metavar="HOW",
)  # fmt: skip
PARTITION_CACHE = Option(
    "partition_cache", "file", None,
    "Folder in which METIS's partitions are kept and looked for, by pattern.",
    "folder in which partitions that METIS finds are kept, and looked for, by the pattern of A "
    "([how](gpus.md#partition))",
    form="FOLDER", otherwise="none are kept", metavar="FOLDER",
)  # fmt: skip
OUT = Option(
    "out", "file", None,
    "Save x: .npy, .mtx, .mtx.gz or .txt.",
    "save x (`.npy`, `.mtx`, `.mtx.gz`, `.txt`), however the solve ends",
    form="FILE", metavar="FILE", short="-o",
)  # fmt: skip
PLOT = Option(
    "plot", "file", None,
    "Convergence plot: .png, .svg or .pdf.", "convergence plot (`.png`, `.svg`, `.pdf`)",
    form="FILE", metavar="FILE",
)  # fmt: skip
TRACE = Option(
    "trace", "file", None,
    "Record what each block does: .pftrace (ui.perfetto.dev), .json or .csv.",
    "what each block sends, computes and waits for, as a [time line](trace.md) (`.pftrace`, "
    "`.json`, `.csv`)",
    form="FILE", metavar="FILE",
)  # fmt: skip
TRACE_EVERY = Option(
    "trace_every", "count", 1,
    "Of --trace: record one iteration in N.",
    "of `--trace`: one iteration in N is recorded, so that a trace holds a long run",
    least=1, most=1 << 30, form="N",
)  # fmt: skip
INPUT = Option(
    "input", "choice", "auto",
    "In several processes: each reads or makes the whole matrix, or its own rows (of a .cpufree "
    "file, poisson1d, 2d, 3d, stencil27); auto: own rows where such a generator makes 5 million or "
    "more, and vectors and --out are .npy files.",
    "in several processes: each reads or makes all of A, or [only its own "
    "rows](distributed.md#matrices-that-no-process-holds); `auto` takes own rows if a generator on "
    "a grid makes 5 million or more, and `--rhs`, `--x0` and `--out` allow it",
    choices=("auto", "whole", "rows"),
)  # fmt: skip
CHECK = Option(
    "check", "switch", True,
    "Check the matrix and the answer.",
    "skip the check of the matrix, and of the answer on the host",
)  # fmt: skip
REPLACE_EVERY = Option(
    "replace_every", "count", 50,
    "pipecg: iterations between replacements of the residual by b - A x, 0 for never.",
    least=0, most=LARGEST_COUNT, form="N",
)  # fmt: skip
CHEBYSHEV_DEGREE = Option(
    "chebyshev_degree", "count", 4,
    "Steps of the polynomial of the preconditioner chebyshev.", least=1, most=64, form="N",
)  # fmt: skip
PRECISION = Option(
    "precision", "choice", None,
    "Type of the values in the solve (dtype in Python), or double with the values of A in single "
    "precision (mixed). Default: that of A.",
    "type of the values in the solve (`dtype` in Python), or `mixed`: double, with products that "
    "read A [in single precision](solving/precision.md)",
    choices=("single", "double", "mixed"), otherwise="that of A",
)  # fmt: skip
REORDER = Option(
    "reorder", "choice", "auto", "Order of rows inside a PE.", "order of rows inside a PE",
    choices=("auto", "rcm", "natural"),
)  # fmt: skip
SOLVE = (
    *(RHS, X0, RTOL, ATOL, MAXITER, TIME_LIMIT, METHOD, PC, PC_LEVEL, FACTOR, NULLSPACE),
    *(NEAR_NULLSPACE, COORDINATES, UNKNOWNS),
    *(CHEBYSHEV_DEGREE, REPLACE_EVERY),
    *(PRECISION, ENGINE, GPUS, PES, BLOCKS, SOLVES, PARTITION, PARTITION_CACHE, REORDER),
    *(INPUT, WAIT_LIMIT),
    OUT,
    replace(JSON, meaning="the report with the residual history as JSON; `-` is stdout"),
    *(PLOT, TRACE, TRACE_EVERY, CHECK, TIMINGS, QUIET),
)

# Of info.
INFO = (
    replace(
        PC, default="none", choices=("none", "amg"),
        help="amg: the levels of multigrid, too.",
        meaning="`amg`: the levels of multigrid, too",
    ),
    replace(
        PES,
        default=None,
        takes_auto=False,
        help="PEs to partition for. Default: 1, or as in a file.",
        meaning="partition for N PEs",
        otherwise="1, or as many as a partition in a file has",
    ),
    replace(PARTITION, meaning="as for `solve`"),
    Option(
        "save_partition", "file", None,
        "Save the part number of each row for solve --partition: .npy, or text.",
        "save the part number of each row, for `solve --partition` (`.npy`, or text)",
        form="FILE", metavar="FILE",
    ),
    replace(JSON, help="Facts as JSON; - is stdout.", meaning="facts as JSON; `-` is stdout"),
)  # fmt: skip

# Of run.
RANKS = Option(
    "ranks", "count", None, "Processes, one for each PE.", short="-n",
    least=1, most=MOST_PES, form="N", required=True,
)  # fmt: skip

# Of convert.
PARTS = Option(
    "parts", "count", None,
    "Bring the rows of each of N parts together, for N processes that read their own rows "
    "(.cpufree only). b and x stay in the order of A.",
    "bring the rows of each of N parts together",
    least=1, most=MOST_PES, form="N",
    otherwise="as many as a partition in a file has; else the rows stay where they are",
    metavar="N",
)  # fmt: skip
PARTS_PARTITION = replace(
    PARTITION,
    help="The parts: auto, metis, contiguous, rows, or a file of part numbers.",
    meaning="the parts, as for `solve`",
)
PARTS_CHECK = replace(
    CHECK,
    help="With parts: check that solve accepts A.",
    meaning="with parts: do not check whether `solve` accepts the matrix",
)
PARTS_REORDER = replace(
    REORDER,
    help="Order of rows inside a part, as solve would choose it.",
    meaning="order of rows inside a part; `auto` as `solve` would choose it",
)
CONVERT = (
    replace(
        OUT,
        default=None,
        required=True,
        help="What to write: .mtx, .mtx.gz, .npz or .cpufree.",
        meaning="what to write (`.mtx`, `.mtx.gz`, `.npz`, `.cpufree`)",
        otherwise="required",
    ),
    *(PARTS, PARTS_PARTITION, PARTS_REORDER, PARTS_CHECK),
)
# Of program.
PROGRAM = (
    Option(
        "name", "text", None,
        "Which of several programs of the file.", "which of several programs of the file",
        form="NAME", otherwise="the only one, or the last",
    ),
    ENGINE,
    GPUS,
    replace(
        PES,
        help="Number of PEs (threads or GPUs), or auto.",
        meaning="threads or GPUs; fewer are used where arrays have too few rows",
    ),
    WAIT_LIMIT,
    Option(
        "explain", "switch", False,
        "Say what the compiler makes of it; run nothing.",
        "say what the compiler makes of it, and run nothing",
    ),
    replace(
        PLOT,
        help="Picture of an array afterwards: .png, .svg or .pdf.",
        meaning="picture of the first array that is returned, or else written",
        form="FILE.png",
    ),
    replace(
        OUT,
        help="Save that array: .npy.",
        meaning="save that array",
        form="FILE.npy",
    ),
    TIMINGS,
)  # fmt: skip

# Of trace report.
TRACE_REPORT = (
    replace(
        JSON, help="The report as JSON; - is stdout.", meaning="the report as JSON; `-` is stdout"
    ),
    replace(
        PLOT,
        help="Picture of the report: .png, .svg or .pdf.",
        meaning="picture of the report (`.png`, `.svg`, `.pdf`)",
    ),
)
TABLES = {"program": PROGRAM, "solve": SOLVE, "info": INFO, "convert": CONVERT}
