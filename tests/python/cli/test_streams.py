"""The command as a process: streams that do not print all, readers that leave, an early Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

POISSON = "gen:poisson2d?nx=20,ny=20"
PATIENCE = 300.0


def cpufree(*words: str, **how: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "cpufree", *words],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        **how,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("streams", [{}, {"PYTHONIOENCODING": "ascii"}])
def test_locale_of_ascii_gets_escapes_and_the_code_of_the_solve(streams: dict[str, str]) -> None:
    ascii_ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    names = ("PYTHONIOENCODING", *ascii_)
    rest = {name: value for name, value in os.environ.items() if name not in names}
    ended = cpufree("solve", POISSON, env=rest | ascii_ | streams)
    assert ended.returncode == 0, ended.stderr
    assert b"relative to \\u2016b\\u2016" in ended.stdout


@pytest.mark.parametrize("words", [["--help"], ["solve", "--help"], ["--version"], ["suite"]])
def test_reader_that_leaves_at_once_makes_no_error(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [sys.executable, "-m", "cpufree", *words], stdout=write, stderr=subprocess.PIPE
    ) as process:
        os.close(write)
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, b"")


def interrupted_at_once() -> None:
    """Be a process to which Ctrl-C has come before Python has begun."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_before_the_command_has_begun_ends_it_without_a_word() -> None:
    ended = cpufree("solve", POISSON, preexec_fn=interrupted_at_once)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")
