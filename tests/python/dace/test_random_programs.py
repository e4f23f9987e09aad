"""Generated programs of DaCe do as plain Python does, or are refused with the user's line.

Seeds are fixed; longer runs are those of `any_programs_run.py --feature dace`, in support.
"""

from __future__ import annotations

from pathlib import Path

import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

from any_program import Case  # noqa: E402
from any_program_compiled import compare_compiled  # noqa: E402
from any_program_oracle import Verdict, compare  # noqa: E402
from any_programs import words_of  # noqa: E402
from dace_random import DACE  # noqa: E402

_SHOWN = 5
_TOGETHER = 50


def assert_none_failed(found: list[tuple[Case, Verdict]]) -> None:
    failed = [(case, verdict) for case, verdict in found if verdict.failed]
    shown = "\n\n".join(words_of(case, verdict) for case, verdict in failed[:_SHOWN])
    assert len(failed) == 0, f"{len(failed)} of {len(found)} programs\n{shown}"


@pytest.mark.few(5)
@pytest.mark.parametrize("feature", DACE)
def test_interpreted_programs_do_as_python_does(feature: str, tmp_path: Path) -> None:
    found = [(case, compare(case, tmp_path)) for case in map(DACE[feature], range(8))]
    assert_none_failed(found)
    assert sum(verdict.outcome == "same" for _, verdict in found) >= 2


@pytest.mark.timeout(900)
def test_compiled_programs_do_as_python_does(tmp_path: Path) -> None:
    cases = [DACE[name](seed) for name in DACE for seed in (5000, 5001)]
    verdicts = compare_compiled(cases, tmp_path, lambda k: 1 + k % 4)
    assert_none_failed(list(zip(cases, verdicts, strict=True)))


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("feature", DACE)
def test_many_interpreted_programs_do_as_python_does(feature: str, tmp_path: Path) -> None:
    cases = [DACE[feature](seed) for seed in range(10_000, 10_500)]
    assert_none_failed([(case, compare(case, tmp_path)) for case in cases])


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("feature", DACE)
def test_many_compiled_programs_do_as_python_does(feature: str, level: str, tmp_path: Path) -> None:
    for first in (20_000, 20_000 + _TOGETHER):
        cases = [DACE[feature](seed) for seed in range(first, first + _TOGETHER)]
        verdicts = compare_compiled(cases, tmp_path, lambda k: 1 + k % 4, level)
        assert_none_failed(list(zip(cases, verdicts, strict=True)))
