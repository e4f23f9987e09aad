"""Generated programs of every feature do as plain Python does, or are refused with reason.

Seeds are fixed. A failure is printed as a program that can be run; longer runs, and those of other
seeds, are those of `any_programs_run.py` in tests/python/support/generated.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from any_program import Case
from any_program_compiled import compare_compiled
from any_program_gpu_texts import emit_all
from any_program_oracle import Verdict, compare
from any_programs import BROKEN, FEATURES, Tally, words_of

_SHOWN = 5
_COUNTS = {"odd": 400, "types": 400, "special": 300}
_USUAL = 160  # programs of a feature that are interpreted
_TOGETHER = 50
# What is compiled with optimisation: where a compiler may see more in a text than Python does.
_COMPILED = {
    "-O0": (
        "names",
        "aliases",
        "order",
        "types",
        "errors",
        "odd",
        "rings",
        "chosen",
        "fewer",
        "fields",
        "products",
        "turns",
        "grids",
        "lists",
        "helpers",
        "returns",
    ),
    "-O3": ("rings", "special", "types"),
}


def _assert_none_failed(found: list[tuple[Case, Verdict]]) -> None:
    failed = [(case, verdict) for case, verdict in found if verdict.failed]
    shown = "\n\n".join(words_of(case, verdict) for case, verdict in failed[:_SHOWN])
    assert len(failed) == 0, f"{len(failed)} of {len(found)} programs\n{shown}"


@pytest.mark.parametrize("feature", FEATURES)
def test_interpreted_programs_do_as_python_does(feature: str, tmp_path: Path) -> None:
    cases = [FEATURES[feature](seed) for seed in range(_COUNTS.get(feature, _USUAL))]
    _assert_none_failed([(case, compare(case, tmp_path)) for case in cases])


@pytest.mark.parametrize("feature", [name for name in FEATURES if name not in BROKEN])
def test_most_programs_are_taken(feature: str, tmp_path: Path) -> None:
    tally = Tally()
    for seed in range(80):
        case = FEATURES[feature](seed)
        tally.add(feature, case.labels, compare(case, tmp_path).outcome)
    assert tally.share(feature) >= 0.6, "\n".join(tally.lines())


@pytest.mark.usefixtures("users_compiler")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("level", _COMPILED)
def test_compiled_programs_do_as_python_does(level: str, tmp_path: Path) -> None:
    cases = [FEATURES[name](seed) for name in _COMPILED[level] for seed in range(5000, 5010)]
    verdicts = compare_compiled(cases, tmp_path, lambda k: 1 + k % 5, level)
    _assert_none_failed(list(zip(cases, verdicts, strict=True)))


@pytest.mark.few(6)
@pytest.mark.parametrize("feature", FEATURES)
def test_kernels_for_gpus_are_emitted_without_internal_errors(feature: str, tmp_path: Path) -> None:
    kernels = [emit_all(FEATURES[feature](seed), 1 + seed % 4, tmp_path) for seed in range(150)]
    assert max(kernels) > 1  # one that keeps values on chip is among them


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("feature", FEATURES)
def test_many_interpreted_programs_do_as_python_does(feature: str, tmp_path: Path) -> None:
    cases = [FEATURES[feature](seed) for seed in range(10_000, 13_000)]
    _assert_none_failed([(case, compare(case, tmp_path)) for case in cases])


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("feature", FEATURES)
def test_many_compiled_programs_do_as_python_does(feature: str, level: str, tmp_path: Path) -> None:
    cases = [FEATURES[feature](seed) for seed in range(20_000, 20_000 + 4 * _TOGETHER)]
    for begin in range(0, len(cases), _TOGETHER):
        part = cases[begin : begin + _TOGETHER]
        verdicts = compare_compiled(part, tmp_path, lambda k: 1 + k % 5, level)
        _assert_none_failed(list(zip(part, verdicts, strict=True)))
