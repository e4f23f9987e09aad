"""What takes long is said, and what does not is not."""

from __future__ import annotations

import logging
import threading

import pytest
from fake_core import Machine

from cpufree import extension, patience


def _wait_for_words() -> None:
    for thread in threading.enumerate():
        if thread.name == "cpufree-patience":
            thread.join(30.0)


def test_what_takes_long_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    with patience.says("compiling a kernel", seconds=0.0):
        _wait_for_words()
    assert "compiling a kernel" in caplog.text


def test_what_is_done_is_asked_until_there_are_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    monkeypatch.setattr(patience, "_AGAIN", 0.001)
    words = iter(["", "", "compiling 3 kernels", "compiling 2 kernels"])
    with patience.says(lambda: next(words), seconds=0.0):
        _wait_for_words()
    assert [record.message for record in caplog.records] == ["compiling 3 kernels"]


def test_kernels_that_compile_are_counted_for_who_waits(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    machine(1).compiling = 3
    with extension.says_what_compiles():
        _wait_for_words()
    assert "compiling 3 kernels for GPUs" in caplog.text


def test_who_watches_a_terminal_reads_it_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    patience.say("compiling a kernel")
    assert capsys.readouterr().err == "cpufree: compiling a kernel\n"


def test_what_is_done_soon_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    with patience.says("compiling a kernel", seconds=600.0):
        pass
    assert caplog.text == ""
