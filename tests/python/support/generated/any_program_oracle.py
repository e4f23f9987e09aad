"""Compares a program with the same function in plain Python: values, side effects and errors."""

from __future__ import annotations

import hashlib
import re
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from any_program import Case, Given, TooLong, load, load_plain, run_within
from any_program_values import Branch, Describer, Leaf, first_difference
from dace_plain import is_dace

from cpufree.errors import InvalidInputError, ProgramError

# Of this process's own time: for a program that Python runs in milliseconds, and for that run.
_SECONDS, _SECONDS_OF_PYTHON = 3.0, 2.0
_SECONDS_OF_DACE = 30.0  # whose front end takes most of it
_ROUNDED = re.compile(
    # docs/compiler.md says so
    r"exp|log|sin|cos|tan|power|hypot|cbrt|\*\*|norm|mean|sum|dot|inner|matmul|@ "
)
_INNER = re.compile(r"\b__\w+|\b\w+(Node|Scope)\b|site-packages|\bSDFG\b")
# Faults of a run that Python does not have: docs/compiler.md lists them.
_OWN_FAULTS = ("64 bits",)


@dataclass(frozen=True)
class Run:
    """What calls of a program left: results and arrays, or the error that ended them."""

    values: tuple[Leaf | Branch, ...] = ()
    after: Leaf | Branch | None = None
    before: Leaf | Branch | None = None
    error: BaseException | None = None
    endless: bool = False


@dataclass(frozen=True)
class Verdict:
    """What a comparison found.

    `outcome` is "same", "raises" (both do), "refused", "skipped" (nothing to compare with), or
    "failed"; then `kind` names what is wrong, and `words` say it.
    """

    outcome: str
    kind: str = ""
    words: str = ""

    @property
    def failed(self) -> bool:
        """Whether the compiler is wrong."""
        return self.outcome == "failed"


def compare(case: Case, folder: Path) -> Verdict:
    """Return how a program, interpreted, compares with Python."""
    path = path_of(case, folder)
    expected = expected_of(case, path)
    if expected is None:
        return Verdict("skipped")
    try:
        return judge(case, expected, *ours_of(case, path, _interpreted))
    finally:
        path.unlink(missing_ok=True)


def _interpreted(program: Any, given: Given) -> Any:
    return program.interpret(*given, **given.named)


def path_of(case: Case, folder: Path) -> Path:
    """Return a place for the text of a program."""
    words = hashlib.sha256(case.text.encode()).hexdigest()[:12]
    return folder / f"{case.feature.replace(' ', '_')}_{case.seed}_{words}.py"


def expected_of(case: Case, path: Path) -> Run | None:
    """Return what plain Python does; None: it takes no such text, or the run does not end."""
    try:
        names = load_plain(case.text, path)
    except Exception:
        return None
    found = _calls(
        names,
        lambda p, given: within_time(
            lambda: run_within(path, lambda: p(*given, **given.named)), _SECONDS_OF_PYTHON
        ),
    )
    return None if found.endless else found


def ours_of(
    case: Case, path: Path, run: Callable[[Any, Given], Any], seconds: float = 0.0
) -> tuple[Run, bool]:
    """Return what the program does, and whether an error is of its lowering."""
    path.write_text(case.text)
    seconds = seconds or (_SECONDS_OF_DACE if is_dace(case.text) else _SECONDS)
    try:
        names = load(case.text, path)
    except BaseException as error:
        return Run(error=error), True
    found = _calls(names, lambda p, given: within_time(lambda: run(p, given), seconds))
    if found.error is None or isinstance(found.error, ProgramError):
        return found, found.error is not None and _refuses(names)
    return found, True  # arguments are refused by InvalidInputError


def _calls(names: dict[str, Any], call: Callable[[Any, Given], Any]) -> Run:
    """Call the program of a module, twice where it says so."""
    values: list[Leaf | Branch] = []
    before: Leaf | Branch | None = None
    for again in range(2 if "between" in names else 1):
        if again:
            names["between"]()
        given = Given.of(names)
        before = _arrays(given, names)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result = call(names["p"], given)
        except TooLong:
            return Run(endless=True)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            return Run((), _arrays(given, names), before, error)
        values.append(Describer(_known(given, names)).value(result))
        values.append(_arrays(given, names))
    return Run(tuple(values), values[-1], before)


def _known(given: Any, names: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for k, value in enumerate(given):
        items = value if isinstance(value, tuple | list) else [value]
        for j, item in enumerate(items):
            known[f"argument {k}.{j}" if items is value else f"argument {k}"] = item
    known.update({k: v for k, v in names.items() if isinstance(v, np.ndarray)})
    return known


def _arrays(given: Any, names: dict[str, Any]) -> Leaf | Branch:
    """Return the caller's values: arguments, and arrays and lists of the module."""
    of_module = {k: v for k, v in names.items() if isinstance(v, np.ndarray | list)}
    return Describer({}).value((*given, of_module))


def _refuses(names: dict[str, Any]) -> bool:
    """Return whether a program is refused before it runs."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given = Given.of(names)
            within_time(lambda: names["p"].lower(*given, **given.named), _SECONDS_OF_DACE)
    except BaseException:
        return True
    return False


def within_time(function: Callable[[], Any], seconds: float = _SECONDS) -> Any:
    """Call a function; raise TooLong when it has computed for too long."""

    def stop(_signal: int, _frame: Any) -> None:
        raise TooLong

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return function()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def judge(case: Case, expected: Run, found: Run, at_lowering: bool) -> Verdict:
    """Return how what a program did compares with what Python does."""
    if found.endless:
        return Verdict("failed", "endless", "Python ends, the program does not")
    if found.error is not None:
        return _judge_error(case, expected, found, at_lowering)
    if expected.error is not None:
        error = expected.error
        name = type(error).__name__
        return Verdict("failed", "no error", f"Python raises {name}: {error}; the program does not")
    rounded = _ROUNDED.search(case.text) is not None
    for k, (a, b) in enumerate(zip(expected.values, found.values, strict=True)):
        name = "result" if k % 2 == 0 else "caller's values"
        difference = first_difference(name, a, b, rounded)
        if difference:
            kind, words = difference
            return Verdict("failed", f"{name}: {kind}", words)
    return Verdict("same")


def _judge_error(case: Case, expected: Run, found: Run, at_lowering: bool) -> Verdict:
    error = found.error
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, InvalidInputError):
        return Verdict("failed", f"bare {type(error).__name__}", text)
    if found.before is not None and found.after is not None:
        difference = first_difference("caller's values", found.before, found.after, False)
        if difference:
            return Verdict("failed", "written before an error", difference[1])
    if at_lowering:
        fault = _bad_dace_words(case, error) if is_dace(case.text) else _bad_words(error)
        if fault:
            return Verdict("failed", "words of a refusal", f"{fault}: {text}")
    if expected.error is not None:
        return Verdict("raises", "", text)
    if at_lowering or any(words in str(error) for words in _OWN_FAULTS):
        return Verdict("refused", "", text)
    return Verdict("failed", "fault", f"Python does not raise: {text}")


def _bad_words(error: InvalidInputError) -> str:
    """Return what a refusal lacks; empty: it has place, reason and advice."""
    if not isinstance(error, ProgramError):
        return "" if ":" in str(error) else "no advice"
    lines = str(error).splitlines()
    carets = [k for k, line in enumerate(lines) if line.strip() and not line.strip("^ \t")]
    if not error.file or not error.line:
        return "no place"
    if not carets:
        return "no caret"
    return "" if len(lines) > carets[-1] + 1 and lines[carets[-1] + 1].strip() else "no advice"


def _bad_dace_words(case: Case, error: InvalidInputError) -> str:
    """Return what a refusal of a program of DaCe's lacks; it names only what is the user's."""
    text = str(error)
    inner = _INNER.search(text)
    if inner:
        return f"{inner.group()} is no name of the user's"
    if not isinstance(error, ProgramError):
        return "" if ":" in text else "no advice"
    line = case.text.splitlines()[error.line - 1].strip() if error.line else ""
    if not line or not Path(error.file).name.startswith(case.feature.replace(" ", "_")):
        return "no place"
    lines = text.splitlines()
    if len(lines) < 3 or lines[1].strip() != line:
        return "no line of the program"
    return "" if lines[2].strip() else "no advice"
