"""What takes long is said, and what does not is not."""

from __future__ import annotations

import logging
import threading

import pytest

from cpufree import patience


def test_what_takes_long_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    with patience.says("compiling a kernel", seconds=0.0):
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join(30.0)
    assert "compiling a kernel" in caplog.text


def test_who_watches_a_terminal_reads_it_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    patience._say("compiling a kernel")
    assert capsys.readouterr().err == "cpufree: compiling a kernel\n"


def test_what_is_done_soon_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="cpufree")
    with patience.says("compiling a kernel", seconds=600.0):
        pass
    assert caplog.text == ""
