"""What public functions say of the parameters that they share: stated here, once.

A docstring names them in braces on a line of their own, `{rtol, atol}`, and `with_parameters` puts
their entries there, in NumPy's style. Types, defaults and ranges are those of `cpufree.options`.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any, TypeVar

from cpufree import options
from cpufree.options.schema import Option, plain

Described = TypeVar("Described")
WIDTH = 100


def with_parameters(described: Described) -> Described:
    """Put the entries of shared parameters into the docstring of a function or class."""
    if described.__doc__:  # python -OO has none
        described.__doc__ = expand(described.__doc__)
    return described


def expand(text: str) -> str:
    """Return a docstring with the entries of the parameters that it names in braces."""

    def entries(line: re.Match[str]) -> str:
        indent = line[1]
        found = "\n".join(entry(name.strip(), WIDTH - len(indent)) for name in line[2].split(","))
        return textwrap.indent(found, indent)

    return re.sub(r"^( *)\{(\w+(?:, \w+)*)\}$", entries, text, flags=re.MULTILINE)


def entry(name: str, width: int = WIDTH) -> str:
    """Return the entry of a parameter; KeyError for one that is not shared."""
    option = OPTIONS.get(name)
    kind, told = (kind_of(option), range_of(option)) if option else (KINDS[name], "")
    words = " ".join(filter(None, (" ".join(MEANINGS[name].split()), told)))
    lines = textwrap.fill(words, width - 4, break_long_words=False, break_on_hyphens=False)
    return f"{name} : {kind}\n{textwrap.indent(lines, '    ')}"


def kind_of(option: Option) -> str:
    """Return the type and the default of an option, as NumPy's style has them."""
    if option.kind == "choice":
        kind = "{" + ", ".join(f'"{word}"' for word in option.choices) + "}"
    elif option.kind == "switch":
        kind = "bool"
    else:
        kind = "int" if option.kind == "count" else "float"
        kind += ' or "auto"' if option.takes_auto else ""
    if option.default is None:
        return f"{kind}, optional"
    default: Any = option.default
    shown = f'"{default}"' if isinstance(default, str) else plain(default)
    return f"{kind}, default {shown}"


def range_of(option: Option) -> str:
    """Return which numbers an option takes, as a sentence; "" for other kinds."""
    if option.kind not in ("number", "count") or option.least is None:
        return ""
    if option.form == "SECONDS":
        return "Above 0."
    least = f"{option.least:g}"
    if option.most is not None and option.most < options.LARGEST_COUNT:
        return f"From {least} to {option.most:g}."
    return "0 or more." if least == "0" else f"{least} or more."


OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        *(options.RTOL, options.ATOL, options.MAXITER, options.METHOD, options.PC),
        *(options.PC_LEVEL, options.UNKNOWNS),
        *(options.TIME_LIMIT, options.WAIT_LIMIT, options.REPLACE_EVERY),
        *(options.CHEBYSHEV_DEGREE, options.ENGINE, options.PES, options.BLOCKS, options.CHECK),
        options.SOLVES,
    )
}

# Types of parameters that are in no table of options.
KINDS = {
    "A": "sparse or dense matrix, shape (n, n)",
    "b": "array, shape (n,), (n, 1) or (n, k)",
    "x0": "array of the shape of b, optional",
    "gpus": '"auto", "all", str or sequence of int, default "auto"',
    "reorder": '{"auto", "rcm", "natural"} or bool, default "auto"',
    "partition": '{"auto", "metis", "contiguous", "rows"} or array of int (n,), default "auto"',
    "partition_cache": "str or path, optional",
    "nullspace": '"constant", array of shape (n,) or (n, k), or path of a file, optional',
    "near_nullspace": "array, shape (n, k), or path of a file, optional",
    "coordinates": "array, shape (nodes, 2) or (nodes, 3), or path of a file, optional",
    "dtype": "float32, float64, complex64 or complex128, optional",
    "precision": '"mixed", optional',
    "progress": "bool or callable, optional",
    "gather": "bool, default True",
    "trace": "bool, str, path or cpufree.trace.Recording, optional",
    "columns": '{"auto", "together", "block", "one by one"}, default "auto"',
}

MEANINGS = {
    "A": """Symmetric or Hermitian positive definite: SciPy sparse of any format, dense NumPy,
        CsrMatrix, a matrix of CuPy or PyTorch, or the path of a file. It is not changed.""",
    "b": """Right-hand side, finite, in the unit of A x. With k columns, k right-hand sides are
        solved on one set-up, see `columns`, and `Result.columns` has each. May be an array
        of CuPy or PyTorch on a GPU, shape (n,) or (n, k) with k from 2, of the type of the solve; x
        is then one like it, and nothing passes through the host.""",
    "x0": "First guess, where b lies; default zero.",
    "rtol": "The solve ends where ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol).",
    "atol": "Absolute tolerance of the residual, in the unit of b; see rtol.",
    "maxiter": "Most iterations; default 10 n.",
    "method": """Variant of conjugate gradients: "cg" (Hestenes and Stiefel 1952), "prcg" (Chen and
        Carson 2020, one reduction per iteration), "pipecg" (Ghysels and Vanroose 2014, one
        reduction, overlapped); or for a matrix that is not positive definite "minres" (Paige and
        Saunders 1975, A symmetric) or "bicgstab" (van der Vorst 1992, A not symmetric), for which A
        is checked accordingly. Auto is prcg, unless `pc` is "amg", which is for cg, or
        "none" and measurements of systems of this size on as many GPUs say otherwise;
        `Result.why` gives the reason.""",
    "pc": """Preconditioner: the inverse diagonal ("jacobi"), a polynomial of `chebyshev_degree`
        steps in the Jacobi-scaled matrix ("chebyshev"), a factorised sparse approximate inverse
        ("fsai"), one cycle of algebraic multigrid ("amg", with the method cg), or none; levels of
        multigrid that were made elsewhere (`cpufree.amg.from_levels`); "auto" takes amg where that
        is expected to be sooner than jacobi, and says why in `Result.why`. Fsai and amg are
        computed when the matrix is set up.""",
    "pc_level": """fsai: its factor has the pattern of the lower triangle of A (1), or of that of
        A², without what is small (2): fewer iterations, each of which costs more.""",
    "nullspace": """For a singular A, semidefinite: its null space, as all v with A v = 0.
        "constant" for a graph Laplacian, or Neumann conditions on all sides; vectors for others,
        such as the rigid body modes of a body without supports. b and x are projected onto what is
        orthogonal to it: x has no part in it, and `Result.outside` tells how much of b no x can
        give.""",
    "near_nullspace": """amg: up to 6 vectors that A nearly maps to 0, which coarse levels then
        represent, such as the rigid body modes of an elastic body. Default: the constant, or the
        translations where rows are 2 or 3 unknowns of a node.""",
    "coordinates": """amg: where the nodes of an elastic body are, in the order of their unknowns,
        of which each node has as many as it has coordinates; its rigid body modes are then what
        coarse levels represent.""",
    "unknowns": """amg: how the unknowns of a node are numbered: one after the other ("by node"), or
        the first ones of all nodes first ("by component"). Auto: by node, where rows come in twos
        or threes with the same columns.""",
    "time_limit": "Seconds after which to stop with what has been reached; default none.",
    "wait_limit": """Seconds that a block may wait for another before all is given up with a
        diagnosis (WaitTimeoutError).""",
    "replace_every": """pipecg: iterations between replacements of the residual by b - A x, 0 for
        never. Once b - A x exceeds twice what the recurrence says, prcg takes over.""",
    "chebyshev_degree": "Steps of the polynomial of the preconditioner chebyshev.",
    "columns": """How several right-hand sides are solved: up to 8 together by cg, which reads A
        once for all of them, each with its own steps, stopping test and reason to end, all with
        one time_limit; the same as a block, by block CG (O'Leary 1980), whose directions serve
        all columns: fewer iterations, each of which costs more; or one by one, each with a
        time_limit of its own. Auto is together where that pays; `Result.why` tells.""",
    "trace": """True, or the name of a file (.pftrace, .json, .csv) that is written: what each block
        sends, computes and waits for is recorded (`Result.trace`); a Recording has more choices.
        Results have the same bits; of one right-hand side.""",
    "partition_cache": """Folder in which partitions that METIS finds are kept and looked for, by
        the pattern of A; several processes may share it. A damaged file is replaced and reported.
        Default: none are kept.""",
    "solves": """Solves that are expected with this matrix. Auto takes the engine and as many GPUs
        as give the last answer soonest, set-up included; `Result.why` gives the times compared.""",
    "engine": """Auto is GPUs (cuda_p2p) where there are some and the work is worth setting them up,
        else the CPU (cpu_threads). The last three are for programs that a launcher has started as
        several processes, each of which makes the same calls: nvshmem and nccl have a GPU for each;
        the result is then complete in rank 0.""",
    "gpus": """Which GPUs: device numbers such as [0, 2], or a text such as "0,2-5". Numbers are
        CUDA's, which count what CUDA_VISIBLE_DEVICES leaves. Auto takes as many as pay. PEs share a
        GPU that is named several times, as [0, 0, 1, 1] has it, for tests and models.""",
    "pes": """Number of processing elements (PEs): on cuda_p2p a PE is a GPU, and auto is as many as
        pay; on cpu_threads it is a group of threads, and auto is 1.""",
    "blocks": """Blocks for each PE. Auto: on a GPU as many as run at once; on the CPU, where blocks
        are threads, the available cores divided among the PEs, fewer for small work.""",
    "partition": """Which PE owns which rows; an array gives the number of its PE for each row, from
        0, and pes "auto" is then the number of parts.""",
    "reorder": """Order of rows inside a PE; True is "rcm", False is "natural". Auto reorders where
        that brings entries clearly nearer to the diagonal.""",
    "check": """Test that A is finite and symmetric or Hermitian, with a positive diagonal. False
        saves the time; what the test would have found may show as DIVERGED_INDEFINITE_MAT or
        DIVERGED_NANORINF.""",
    "dtype": """Type in which to solve; default that of A. Of a complex A, float32 and float64 name
        the type of its parts.""",
    "precision": """Mixed: a solve in float64 whose products read the values of A in float32;
        b - A x, with A as it is, takes the place of the residual now and then, and is what the
        stopping test is made with. Sooner where A has many different values and does not fit on
        chip or into a cache; where it changes nothing, a warning says so.""",
    "progress": """True shows a bar in terminals and notebooks. Or a function, called as
        progress(iteration, residual norm) in this thread, about every 20 ms on GPUs and 50 ms on
        the CPU; where it returns False, the run ends (reason INTERRUPTED), as with Ctrl-C.""",
    "gather": """Of several processes, rank 0 gets all values; False: each has its own part
        alone.""",
}
