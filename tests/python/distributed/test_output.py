"""What ranks print reaches the launcher's output in whole lines, and soon."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest
from ranks_here import PATIENCE, clean, cli, launched

# Writes lines in parts, as programs do that print number by number.
IN_PARTS = (
    "import os, sys, time\n"
    "for k in range(40):\n"
    "    for part in (os.environ['CPUFREE_RANK'], '-' * 20, str(k), chr(10)):\n"
    "        sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.001)\n"
)


def run(*words: str, ranks: int = 3) -> subprocess.CompletedProcess[bytes]:
    """Run a program of Python as ranks."""
    command = [sys.executable, *cli(["run", "-n", str(ranks), *words])]
    return subprocess.run(command, env=clean(), capture_output=True, timeout=PATIENCE)


def program(words: str) -> list[str]:
    """Return a program of Python."""
    return [sys.executable, "-c", words]


def test_lines_of_ranks_do_not_mix() -> None:
    lines = run(*program(IN_PARTS)).stdout.decode().splitlines()
    expected = {f"{rank}{'-' * 20}{k}" for rank in range(3) for k in range(40)}
    assert len(lines) == len(expected)
    assert set(lines) == expected


def test_blocks_of_buffered_ranks_do_not_mix_within_a_line() -> None:
    words = "import os\nfor k in range(5000): print(os.environ['CPUFREE_RANK'] * 40)"
    lines = run(*program(words)).stdout.decode().splitlines()
    assert sorted(lines) == sorted(str(rank) * 40 for rank in range(3) for _ in range(5000))


def test_labels_begin_each_line() -> None:
    words = "import os, sys; print('a'); print('b', end=''); print('c', file=sys.stderr)"
    ended = run("--label", *program(words), ranks=2)
    assert sorted(ended.stdout.decode().splitlines()) == ["0: a", "0: b", "1: a", "1: b"]
    assert sorted(ended.stderr.decode().splitlines()) == ["0: c", "1: c"]


def test_bytes_of_one_rank_are_passed_on_as_they_are() -> None:
    words = (
        "import os, sys; data = bytes(range(256)) * 2000\n"
        "if os.environ['CPUFREE_RANK'] == '0': sys.stdout.buffer.write(data)"
    )
    assert run(*program(words)).stdout == bytes(range(256)) * 2000


def test_all_that_was_printed_before_a_crash_is_there() -> None:
    words = "import os\nprint('x' * 100_000, flush=True); os.kill(os.getpid(), 9)"
    ended = run(*program(words), ranks=2)
    assert ended.returncode == 137
    assert ended.stdout.count(b"x") == 200_000


def test_stdout_and_stderr_in_one_file_keep_their_order() -> None:
    words = (
        "import os, sys\n"
        "for k in range(500):\n"
        "    print(k, file=sys.stdout if k % 2 else sys.stderr, flush=True)"
    )
    command = [sys.executable, *cli(["run", "-n", "1", *program(words)])]
    done = subprocess.run(
        command, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE
    )
    assert done.stdout.decode().split() == [str(k) for k in range(500)]


def test_a_reader_that_goes_away_ends_the_job() -> None:
    launcher = subprocess.Popen(
        [sys.executable, *cli(["run", "-n", "2", "yes"])],
        env=clean(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"y\n"
    launcher.stdout.close()
    assert launcher.wait(PATIENCE) == 141  # SIGPIPE


def test_a_process_that_a_rank_leaves_behind_does_not_keep_the_launcher() -> None:
    ended = launched("sh", "-c", "sleep 300 & echo done", ranks=2)
    assert (ended.code, ended.out) == (0, "done\n" * 2)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Give both ends of a terminal of 33 rows and 77 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 33, 77, 0, 0))
    yield ours, theirs
    os.close(ours)


def shown(terminal: tuple[int, int], words: str, until: bytes) -> bytes:
    """Return what a terminal shows of two ranks, at least as far as this."""
    ours, theirs = terminal
    launcher = subprocess.Popen(
        [sys.executable, *cli(["run", "-n", "2", *program(words)])],
        env=clean(),
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    os.close(theirs)
    found, end = b"", time.monotonic() + PATIENCE
    while until not in found and time.monotonic() < end:
        try:
            found += os.read(ours, 4096)
        except OSError:
            break
    launcher.kill()
    launcher.wait()
    return found


def test_rank_0_has_the_terminal_and_the_lines_of_others_reach_it(
    terminal: tuple[int, int],
) -> None:
    words = (
        "import os, sys, time\n"
        "rank = os.environ['CPUFREE_RANK']\n"
        "time.sleep(int(rank))\n"
        "size = os.get_terminal_size(1) if sys.stdout.isatty() else 'none'\n"
        "print(rank, size, flush=True)\n"
        "time.sleep(600)"
    )
    expected = b"0 os.terminal_size(columns=77, lines=33)\r\n1 none\r\n"
    assert shown(terminal, words, b"none\r\n") == expected


def test_a_terminal_shows_a_question_before_its_line_ends(terminal: tuple[int, int]) -> None:
    words = (
        "import os, time\n"
        "if os.environ['CPUFREE_RANK'] == '0': print('name? ', end='', flush=True)\n"
        "time.sleep(600)"
    )
    assert shown(terminal, words, b"name? ") == b"name? "
