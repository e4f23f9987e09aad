"""What is chosen for "auto", which options are refused, what the host does while kernels run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.watch import Watch
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import load_core


def test_one_pe_is_the_default() -> None:
    assert choices.choose_pes("auto", None)[0] == 1


def test_environment_sets_pes_unless_the_call_does() -> None:
    assert choices.choose_pes("auto", 3) == (3, "asked for by CPUFREE_PES")
    assert choices.choose_pes(2, 3) == (2, "asked for")


def test_environment_sets_blocks_unless_the_call_does() -> None:
    assert choices.choose_blocks("auto", 3, 1, 10**6) == (3, "asked for by CPUFREE_BLOCKS")
    assert choices.choose_blocks(2, 3, 1, 10**6) == (2, "asked for")


def test_large_systems_get_all_available_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "available_cores", lambda: 12)
    assert choices.choose_blocks("auto", None, 1, 10**6)[0] == 12
    assert choices.choose_blocks("auto", None, 5, 10**6)[0] == 2
    assert choices.choose_blocks("auto", None, 64, 10**6)[0] == 1


def test_small_systems_get_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "available_cores", lambda: 12)
    assert choices.choose_blocks("auto", None, 1, choices.SMALL_NNZ - 1)[0] == 1
    assert choices.choose_blocks("auto", None, 1, choices.SMALL_NNZ)[0] == 12


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_available_cores_are_those_of_the_affinity_mask() -> None:
    mask = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(mask)})
        assert choices.available_cores() == 1
    finally:
        os.sched_setaffinity(0, mask)
    assert choices.available_cores() == len(mask)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Asked(engine="gpu"), "unknown engine 'gpu': choose one of auto"),
        (lambda: Asked(pes=0), "pes is 0"),
        (lambda: Asked(blocks="all"), "blocks is 'all'"),
        (lambda: choices.choose_pes(0, None), "pes is 0: give 'auto' or a whole number from 1"),
        (lambda: choices.choose_pes(-1, None), "pes is -1"),
        (lambda: choices.choose_pes(1.5, None), "pes is 1.5"),  # type: ignore[arg-type]
        (lambda: choices.choose_pes("many", None), "pes is 'many'"),
        (lambda: choices.choose_pes(True, None), "pes is True"),
        (lambda: choices.choose_pes(5000, None), "pes is 5000: at most 1024"),
        (lambda: choices.choose_blocks(0, None, 1, 9), "blocks is 0"),
        (lambda: choices.integer("maxiter", -1), "maxiter is -1: give a whole number from 0"),
        (lambda: choices.integer("maxiter", 10.0), "maxiter is 10.0"),
        (lambda: choices.integer("maxiter", 2**63), "maxiter is 9223372036854775808"),
        (lambda: choices.integer("chebyshev_degree", 0, 1), "chebyshev_degree is 0"),
        (lambda: choices.integer("replace_every", 2**31, most=9), "a whole number from 0 to 9"),
        (lambda: choices.real("rtol", -1e-8), "rtol is -1e-08: give a finite number, 0 or more"),
        (lambda: choices.real("rtol", float("nan")), "rtol is nan"),
        (lambda: choices.real("rtol", float("inf")), "rtol is inf"),
        (lambda: choices.real("rtol", "1e-8"), "rtol is '1e-8'"),
        (lambda: choices.real("atol", None), "atol is None"),
        (lambda: choices.real("atol", 1j), "atol is 1j"),
        (lambda: choices.seconds("time_limit", 0, 0.0), "time_limit is 0"),
        (lambda: choices.seconds("time_limit", -1, 0.0), "time_limit is -1"),
    ],
)
def test_refuses_an_option_out_of_range_by_name_and_value(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_numpy_numbers_are_numbers() -> None:
    assert choices.count("pes", np.int64(3)) == 3
    assert choices.real("rtol", np.float32(0.5)) == 0.5
    assert choices.seconds("time_limit", None, 7.0) == 7.0


def test_missing_extension_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cpufree._core", None)
    monkeypatch.delattr(cpufree, "_core", raising=False)
    with pytest.raises(UnsupportedError, match="pip install"):
        load_core()


# The host's part


def test_progress_may_return_none_to_go_on_and_false_to_stop() -> None:
    seen: list[tuple[int, float]] = []
    watch = Watch(lambda iteration, residual: seen.append((iteration, residual)))
    assert watch(3, 0.5) is True
    assert seen == [(3, 0.5)]
    assert Watch(lambda *_: True)(0, 1.0) is True
    assert Watch(lambda *_: False)(0, 1.0) is False
    assert Watch(None)(0, 1.0) is True


def test_progress_hears_of_no_norm_before_kernels_have_told_one() -> None:
    seen: list[tuple[int, float]] = []
    watch = Watch(lambda iteration, residual: seen.append((iteration, residual)))
    assert watch(0, 0.0) is True
    assert watch(0, 2.0) is True
    assert watch(7, 0.0) is True
    assert seen == [(0, 2.0), (7, 0.0)]


def test_an_exception_of_progress_is_kept_and_asks_to_stop() -> None:
    calls = []

    def fail(*_: Any) -> None:
        calls.append(1)
        raise ZeroDivisionError

    watch = Watch(fail)
    assert watch(1, 1.0) is False
    assert watch(2, 1.0) is False
    assert isinstance(watch.error, ZeroDivisionError)
    assert len(calls) == 1


def test_ctrl_c_asks_to_stop_and_the_usual_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert before is signal.default_int_handler
    with Watch(None) as watch:
        assert watch(1, 1.0) is True
        signal.raise_signal(signal.SIGINT)
        assert watch(2, 1.0) is False
    assert watch.interrupted
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_program_is_left_alone() -> None:
    def own(number: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        with Watch(None) as watch:
            assert signal.getsignal(signal.SIGINT) is own
            signal.raise_signal(signal.SIGINT)
        assert not watch.interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_touch_signals() -> None:
    failures: list[BaseException] = []

    def body() -> None:
        try:
            with Watch(None) as watch:
                assert watch(1, 1.0) is True
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert failures == []


# The package


def test_names_that_the_package_shows_are_the_public_ones() -> None:
    assert dir(cpufree) == sorted(cpufree.__all__)


def test_importing_the_package_loads_neither_numpy_nor_the_extension() -> None:
    code = (
        "import sys, cpufree; "
        "heavy = {'numpy', 'scipy', 'cpufree._core', 'cpufree.solvers'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", cpufree.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(cpufree, name) is not None
    assert name in dir(cpufree)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gmres'"):
        cpufree.gmres  # noqa: B018


def test_all_public_errors_derive_from_one() -> None:
    errors = [getattr(cpufree, name) for name in cpufree.__all__ if name.endswith("Error")]
    assert len(errors) >= 6
    assert all(issubclass(error, cpufree.CpufreeError) for error in errors)


def test_blocks_share_the_cores_of_all_processes_of_a_machine() -> None:
    assert choices.choose_blocks("auto", None, 4, 10**6, cores=32)[0] == 8
