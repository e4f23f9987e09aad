"""Compares compiled programs with Python: many in one translation unit, run in a process apart.

On GPUs each program is a module of its own, which the engine compiles. Without a GPU, the texts of
kernels for GPUs can run on threads of the CPU.
"""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import grid_on_cpu
from any_program import Case, Given, load
from any_program_oracle import Run, Verdict, expected_of, judge, ours_of, path_of, within_time
from built_together import kernels_of

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit import emit
from cpufree.compiler.launch import Kernel, passes
from cpufree.errors import CpufreeError

_SECONDS_OF_GPUS = 60.0  # the process's own time for a run there, compiling and watching included
_SECONDS_OF_LOWERING = 30.0
_BLOCKS = 2  # of a PE, where threads run kernels for GPUs
_SILENCE = 90.0  # seconds after which a process that says nothing is ended


@dataclass(frozen=True)
class _Made:
    """A case that is lowered, with its place among the cases."""

    which: int
    case: Case
    path: Path
    expected: Run
    lowered: Any
    is_divided: bool
    kernel: Kernel | None = None


@dataclass(frozen=True)
class _Runs:
    """Where cases run."""

    pes: Callable[[int], int]
    gpus: tuple[int, ...]
    gpu_texts: bool


def compare_compiled(
    cases: Sequence[Case],
    folder: Path,
    pes: Callable[[int], int],
    level: str = "-O0",
    gpus: Sequence[int] = (),
    *,
    gpu_texts: bool = False,
) -> list[Verdict]:
    """Return how programs compare with Python.

    `pes(k)`: the PEs for case k; `gpus`: those that the PEs are on, in turn. Without, it is the CPU
    engine, and `level` the compiler's; with `gpu_texts` threads run the kernels for GPUs.
    """
    runs = _Runs(pes, tuple(gpus), gpu_texts)
    verdicts: dict[int, Verdict] = {}
    made: list[_Made] = []
    for which, case in enumerate(cases):
        found = _lowered(which, case, folder)
        if isinstance(found, _Made):
            made.append(found)
        else:
            verdicts[which] = found
    built = made if gpus or gpu_texts else _built(made, folder, level, verdicts)
    while built:
        _run_apart(built, runs, verdicts)
        built = [m for m in built if m.which not in verdicts]
    for m in made:
        m.path.unlink(missing_ok=True)
    return [verdicts[k] for k in range(len(cases))]


def _lowered(which: int, case: Case, folder: Path) -> _Made | Verdict:
    """Return a case that can be compiled, or what there is to say without."""
    path = path_of(case, folder)
    expected = expected_of(case, path)
    if expected is None or "def between():" in case.text:
        return Verdict("skipped")
    path.write_text(case.text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = load(case.text, path)
            values = Given.of(names)
            given = Arguments.of(names["p"].signature, "p", values, values.named)
            lowered = within_time(lambda: names["p"]._lowered(given), _SECONDS_OF_LOWERING)
            given.check(lowered.program)
            within_time(lambda: emit(passes(lowered.program)))
    except BaseException:

        def again(program: Any, arguments: Given) -> Any:
            emit(passes(program.lower(*arguments, **arguments.named)))
            return program.interpret(*arguments, **arguments.named)

        verdict = judge(case, expected, *ours_of(case, path, again))
        path.unlink(missing_ok=True)
        return verdict
    return _Made(which, case, path, expected, lowered, not names["p"]._undivided(lowered))


def _built(
    made: list[_Made], folder: Path, level: str, verdicts: dict[int, Verdict]
) -> list[_Made]:
    """Return cases with their kernels; those whose text no compiler takes get a verdict."""
    if not made:
        return []
    # A folder of its own: a library with the path of one that is loaded is not loaded again.
    part = Path(tempfile.mkdtemp(prefix="kernels_", dir=folder))
    try:
        kernels = kernels_of([m.lowered.program for m in made], part, level)
    except AssertionError as error:
        if len(made) == 1:
            verdicts[made[0].which] = Verdict("failed", "C++ compiler", str(error)[:400])
            return []
        half = len(made) // 2
        parts = made[:half], made[half:]
        return [m for one in parts for m in _built(one, folder, level, verdicts)]
    return [replace(m, kernel=kernel) for m, kernel in zip(made, kernels, strict=True)]


def _run_apart(made: Sequence[_Made], runs: _Runs, verdicts: dict[int, Verdict]) -> None:
    """Run cases in a process of their own, up to the one that ends it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_all(made, runs, writer)
    os.close(writer)
    text, hung = _read(reader)
    os.close(reader)
    if hung:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    lines = text.split("\n")[:-1]
    for m, line in zip(made, lines, strict=False):
        verdicts[m.which] = Verdict(**json.loads(line))
    if len(lines) < len(made):
        words = "no end" if hung else f"the process ended with status {status}"
        kind = "endless" if hung else "crash"
        verdicts[made[len(lines)].which] = Verdict("failed", kind, words)


def _read(reader: int) -> tuple[str, bool]:
    """Return what a process writes, and whether it fell silent."""
    parts: list[bytes] = []
    while select.select([reader], [], [], _SILENCE)[0]:
        part = os.read(reader, 65536)
        if not part:
            return b"".join(parts).decode(), False
        parts.append(part)
    return b"".join(parts).decode(), True


def _run_all(made: Sequence[_Made], runs: _Runs, writer: int) -> None:
    """Run cases, and write a line for each; never returns."""
    try:
        for m in made:
            call = _call(m, runs)
            limit = (_SECONDS_OF_GPUS,) if runs.gpus or runs.gpu_texts else ()
            verdict = judge(m.case, m.expected, *ours_of(m.case, m.path, call, *limit))
            os.write(writer, (json.dumps(asdict(verdict)) + "\n").encode())
    finally:
        os._exit(0)


def _call(m: _Made, runs: _Runs) -> Callable[[Any, Any], Any]:
    pes = runs.pes(m.which) if m.is_divided else 1
    gpus = [runs.gpus[k % len(runs.gpus)] for k in range(pes)] if runs.gpus else []
    where: dict[str, Any] = {"gpus": gpus} if gpus else {"pes": pes}
    engine = "cuda_p2p" if gpus else "cpu_threads"

    def call(program: Any, given: Given) -> Any:
        if runs.gpu_texts:
            return grid_on_cpu.call(program, given, pes, _BLOCKS, named=given.named)
        if m.kernel is not None:
            program._kernels[m.lowered.key] = m.kernel
        try:
            return program.run(given, given.named, engine=engine, wait_limit=30, **where)
        except CpufreeError as error:
            error.args = (f"{error} ({pes} PEs)", *error.args[1:])
            raise

    return call
