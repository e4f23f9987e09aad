"""Run the Python tests in several processes side by side, and then those that are to run alone.

Usage: python tools/test_python.py [--jobs N] [OPTION OF PYTEST]... Each process takes a share of
the test files, the same each time (--share of tests/python/support/shares.py). What the first
prints is seen at once, what others print when they have ended. With one job this is pytest alone.
Exit status: 0 all passed, otherwise pytest's of the first process that failed; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MOST = 4  # processes: tests start teams of processes and threads themselves
PATIENCE = 20.0  # seconds for processes that are asked to end
PASSED, NOTHING_TO_RUN, INTERRUPTED = 0, 5, 130
APART, ALONE = "not slow and not alone", "alone and not slow"

Share = tuple[str, subprocess.Popen[bytes], IO[bytes] | None]


def start(name: str, words: list[str], output: IO[bytes] | None) -> Share:
    """Start pytest with some options; its output goes to a file, or where ours goes."""
    command = [sys.executable, "-m", "pytest", "-q", *words]
    errors = subprocess.STDOUT if output else None
    return name, subprocess.Popen(command, stdout=output, stderr=errors), output


def end(shares: list[Share]) -> None:
    """End what still runs: first as Ctrl-C does, so that tests end what they have started."""
    for number in (signal.SIGINT, signal.SIGKILL):
        for _, process, _ in shares:
            if process.poll() is None:
                process.send_signal(number)
        for _, process, _ in shares:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)


def finish(share: Share) -> int:
    """Wait for a share, print what has not been seen, and return its exit status."""
    name, process, output = share
    status = process.wait()
    if output is not None:
        print(f"-- tests, {name}:", flush=True)
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout.buffer)
    sys.stdout.flush()
    return status


@contextlib.contextmanager
def ended_together(shares: list[Share]) -> Iterator[None]:
    """End all shares where this process is interrupted or asked to end."""

    def asked(number: int, _: object) -> None:
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, asked)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, _ in before:  # a second Ctrl-C is not to leave processes behind
            signal.signal(number, signal.SIG_IGN)
        end(shares)
        for number, handler in before:
            signal.signal(number, handler)


def run_together(jobs: int, words: list[str], folder: Path) -> list[tuple[str, int]]:
    """Run all shares; return the name and the exit status of each."""
    shares: list[Share] = []
    with contextlib.ExitStack() as files, ended_together(shares):
        for k in range(1, jobs + 1):
            output = files.enter_context((folder / f"{k}.log").open("w+b")) if k > 1 else None
            # What each remembers of its failures, it alone writes.
            own = [f"--share={k}/{jobs}", "-m", APART, "-o", f"cache_dir=.pytest_cache/share-{k}"]
            shares.append(start(f"share {k} of {jobs}", [*own, *words], output))
        ended = [(share[0], finish(share)) for share in shares]
    alone: list[Share] = []
    with ended_together(alone):
        alone.append(start("alone", ["-m", ALONE, *words], None))
        return [*ended, ("alone", finish(alone[0]))]


def main() -> int:
    """Run the tests; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given, words = parser.parse_known_args()
    jobs = min(given.jobs, MOST)
    if jobs < 2:
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", *words])
    try:
        with tempfile.TemporaryDirectory() as folder:
            ended = run_together(jobs, words, Path(folder))
    except KeyboardInterrupt:
        print("test_python: interrupted", file=sys.stderr)
        return INTERRUPTED
    # A share of few files may be empty.
    failed = [(name, status) for name, status in ended if status not in (PASSED, NOTHING_TO_RUN)]
    if not failed and all(status == NOTHING_TO_RUN for _, status in ended):
        failed = [("all", NOTHING_TO_RUN)]
    for name, status in failed:
        print(f"test_python: {name}: pytest ended with status {status}", file=sys.stderr)
    return failed[0][1] if failed else PASSED


if __name__ == "__main__":
    sys.exit(main())
