"""Numbers have NumPy's and Python's values, types and errors, special values included."""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
import runpy
from pathlib import Path
from typing import Any

import grid_on_cpu
import number_programs as programs
import numpy as np
import nvrtc
import pytest
from paths import ROOT

import cpufree
from cpufree.compiler.faults import Fault
from cpufree.compiler.operations import EXACT, MATH, UFUNCS
from cpufree.errors import ProgramError

RUNS = ("__call__", "interpret")
TYPES = {"float64": "u", "float32": "v", "int64": "k", "int32": "m", "bool": "b"}

# A compiler takes some ten seconds for all functions of a type.
QUICK = ("float64", "int32")
EACH = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in TYPES]


def cases_of(which: int) -> list[tuple[Any, ...]]:
    random = np.random.default_rng(which)
    pairs = [(programs.WHOLE, 2), (programs.REAL, 2)]
    chosen = [random.choice(len(values), (40, n)) for values, n in pairs]
    picked = zip(*chosen, strict=True)
    return [
        (*(programs.WHOLE[i] for i in whole), *(programs.REAL[i] for i in real))
        for whole, real in picked
    ]


@pytest.mark.parametrize("which", range(len(programs.NAMES)), ids=programs.NAMES)
def test_kernel_raises_where_python_does_and_else_has_its_bits(which: int) -> None:
    for case in cases_of(which):
        arguments = programs.arguments_of(which, *case)
        error, expected = programs.outcome(programs.numbers.function, arguments)
        failed, found = programs.outcome(programs.numbers, arguments)
        if failed and not error:  # Python's numbers have no end; those of programs have
            assert "does not fit in 64 bits" in found, case
            continue
        assert bool(failed) == bool(error), (case, expected, found)
        assert failed or programs.same(expected, found), case


@pytest.mark.parametrize("which", range(len(programs.NAMES)), ids=programs.NAMES)
def test_interpreter_does_as_the_kernel_errors_included(which: int) -> None:
    for case in cases_of(which):
        arguments = programs.arguments_of(which, *case)
        failed, kernel = programs.outcome(programs.numbers, arguments)
        broke, found = programs.outcome(programs.numbers.interpret, arguments)
        assert broke == failed, (case, kernel, found)
        assert kernel == found if failed else programs.same(kernel, found), case


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("program", [programs.casts, programs.casts_and_back])
def test_conversions_have_the_bits_of_numpy(program: Any, run: str) -> None:
    for times in (1, 2, 3):
        arguments = programs.arrays(times)
        with np.errstate(all="ignore"):
            expected = program.function(*arguments)
        found = getattr(program, run)(*arguments)
        pairs = zip(expected, found, strict=True)
        wrong = [k for k, (a, b) in enumerate(pairs) if not programs.same([a], [b])]
        assert not wrong, [expected[k] for k in wrong]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_extremes_have_numpys_signs_of_zeros_and_nan(kind: Any, run: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, np.inf, np.nan]
    pairs = np.array(list(itertools.product(values, values)), kind)
    a, b = (np.ascontiguousarray(column) for column in pairs.T)
    for low, high in itertools.product((0.0, -0.0, 1.0), (0.0, -0.0, 1.0)):
        arguments = (a, b, kind(low), kind(high))
        with np.errstate(all="ignore"):
            expected = programs.extremes.function(*arguments)
        assert programs.same(expected, getattr(programs.extremes, run)(*arguments)), (low, high)


def calls_of(kind: str) -> list[str]:
    """Return calls of all functions that NumPy has for a type, and programs for its results."""
    calls, name = [], TYPES[kind]
    for function, ufunc in UFUNCS.items():
        try:
            types = ufunc.resolve_dtypes((*[np.dtype(kind)] * ufunc.nin, None))
        except TypeError:
            continue
        if all(t.name in TYPES for t in types):
            second = f"abs({name}2) % 5" if function == "power" and kind[0] == "i" else f"{name}2"
            calls.append(f"np.{function}({', '.join([name, second][: ufunc.nin])})")
    return calls


def program_of(calls: list[str], folder: Path) -> Any:
    """Return a program that returns the values of calls."""
    names = ", ".join(f"{n}, {n}2" for n in TYPES.values())
    lines = "".join(f"        {call},\n" for call in calls)
    text = f"@cpufree.program\ndef all_of_them({names}):\n    return (\n{lines}    )\n"
    file = folder / "generated_calls.py"
    file.write_text(f"import numpy as np\n\nimport cpufree\n\n\n{text}")
    spec = importlib.util.spec_from_file_location("generated_calls", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.all_of_them


def near(a: Any, b: Any) -> bool:
    """Return whether arrays are the same but for some last bits."""
    if a.dtype != b.dtype or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    finite = np.isfinite(a)
    x, y = a[finite], b[finite]
    close = np.abs(x - y) <= 4 * np.spacing(np.maximum(np.abs(x), np.abs(y)))
    return bool(close.all()) and programs.same([a[~finite]], [b[~finite]])


@pytest.mark.parametrize("kind", EACH)
def test_functions_of_special_values_are_those_of_numpy(kind: str, tmp_path: Path) -> None:
    calls = calls_of(kind)
    program = program_of(calls, tmp_path)
    pairs = [np.meshgrid(x, x) for x in programs.arrays(1)]
    arguments = [np.ravel(one).copy() for pair in pairs for one in pair]
    with np.errstate(all="ignore"):
        expected = program.function(*arguments)
    for found, is_kernel in ((program(*arguments), True), (program.interpret(*arguments), False)):
        for call, a, b in zip(calls, expected, found, strict=True):
            exact = call[3 : call.index("(")] in EXACT or not is_kernel or a.dtype.kind != "f"
            assert programs.same([a], [b]) if exact else near(a, b), call


@cpufree.program
def out_of_range(a, n):
    a[0] = n


@cpufree.program
def added(a, n):
    a += n


@pytest.mark.parametrize("program", [out_of_range, added])
def test_numbers_that_are_known_not_to_fit_are_refused_at_the_line(program: Any) -> None:
    with pytest.raises(ProgramError, match=r"is out of bounds for int32\n(.*\n)* +\^"):
        program(np.zeros(4, np.int32), 2**31)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_floats_that_are_known_to_have_no_whole_value_are_refused(value: float) -> None:
    with pytest.raises(ProgramError, match=r"converted to a whole number|out of bounds"):
        out_of_range(np.zeros(4, np.int64), value)


@cpufree.program
def unset(u, n):
    s = 0.0
    for k in range(n):
        s += u[0] + k
    return s


def test_interpreter_takes_loops_without_a_turn() -> None:
    assert unset.interpret(np.ones(3), 0) == 0.0


def test_every_fault_of_kernels_has_words() -> None:
    text = (ROOT / "cpufree/programs/args.hpp").read_text()
    names = re.search(r"enum class Fault[^{]*{([^}]*)}", text)
    assert names is not None
    found = [name.strip() for name in names[1].split(",")]
    assert [name.upper() for name in found] == ["NONE", *(fault.name for fault in Fault)]


def test_functions_of_math_are_those_that_python_has() -> None:
    newer = {"cbrt", "exp2"}  # of Python 3.11
    assert {name for name in MATH if not hasattr(math, name)} <= newer


@pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
def test_checks_of_numbers_compile_for_gpus() -> None:
    arguments = (np.full(4, 0.5), np.arange(1, 5), np.ones(4, np.int32))
    _, _, kernel = grid_on_cpu.kernel_for(programs.checks, arguments, 1)
    assert len(nvrtc.compile_text(kernel.text.on_gpu())) > 1000


def test_kernels_for_gpus_convert_as_numpy() -> None:
    arguments = programs.arrays(2)
    with np.errstate(all="ignore"):
        expected = programs.casts_and_back.function(*arguments)
    assert programs.same(expected, grid_on_cpu.call(programs.casts_and_back, arguments, 1, 2))


POWERS = np.array([-1, 3, 2])


@cpufree.program
def powers_of_constants(a):
    return 2 ** POWERS[1:], a ** POWERS[2]


@cpufree.program
def negative_constants(a):
    a[:] = a**POWERS


@pytest.mark.parametrize("run", RUNS)
def test_only_exponents_that_are_used_have_to_be_positive(run: str) -> None:
    found = getattr(powers_of_constants, run)(np.array([1, 2, 3]))
    assert programs.same(powers_of_constants.function(np.array([1, 2, 3])), found)


@pytest.mark.parametrize("run", RUNS)
def test_negative_exponents_of_whole_numbers_are_faults(run: str) -> None:
    with pytest.raises(ProgramError, match=r"negative_constants, line \d+: whole numbers to a neg"):
        getattr(negative_constants, run)(np.array([1, 2, 3]))


@cpufree.program
def two_faults(u, whole):
    k = whole[0].item()
    u += (2**62 * (k + 8)) * (1 // k)


@pytest.mark.parametrize("run", RUNS)
def test_the_first_fault_in_a_line_is_the_one_that_is_told(run: str) -> None:
    with pytest.raises(ProgramError, match="does not fit in 64 bits"):
        getattr(two_faults, run)(np.ones(3), np.array([0]))


LARGE = (
    "2 ** 31 ** 70",
    "-3 << 10 ** 9",
    "'ab' * 10 ** 12",
    "sum(range(10 ** 12))",
    "math.factorial(10 ** 7)",
)


@pytest.mark.parametrize("text", LARGE)
def test_values_without_end_are_refused_at_the_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    file.write_text(
        "import math\n\nimport cpufree\n\n\n@cpufree.program\ndef p(u, n):\n"
        f"    if n > 5:\n        if {text} != 7:\n            u[0] = 1.0\n    return u\n"
    )
    names = runpy.run_path(str(file))
    with pytest.raises(ProgramError, match="is not computed") as caught:
        names["p"](np.ones(4), 9)
    assert caught.value.line == 9
