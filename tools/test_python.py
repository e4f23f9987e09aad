"""Run the Python tests in several processes side by side, and then those that are to run alone.

Usage: python tools/test_python.py [--jobs N] [OPTION OF PYTEST]... Each process takes a share of
the test files, the same each time (--share of tests/python/support/shares.py). What the first
prints is seen at once, what others print when they have ended. With one job, as on two cores,
this is pytest alone: tests start teams that wait for one another, and send signals that are to be
heard soon.
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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MOST = 4  # processes
CORES = 2  # for each of them, for its teams of threads and of processes
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
    """End what still runs. What a terminal has told of Ctrl-C ends by itself."""
    for number, patience in ((0, 1.0), (signal.SIGINT, PATIENCE), (signal.SIGKILL, PATIENCE)):
        running = [process for _, process, _ in shares if process.poll() is None]
        limit = time.monotonic() + patience
        for process in running:
            process.send_signal(number)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))


def show(share: Share) -> None:
    """Print what has not been seen of a share."""
    name, _, output = share
    if output is not None:
        print(f"-- tests, {name}:", flush=True)
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout.buffer)
        sys.stdout.flush()


def finish(share: Share) -> int:
    """Wait for a share, print what has not been seen, and return its exit status."""
    status = share[1].wait()
    show(share)
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


def share_of(k: int, jobs: int) -> list[str]:
    """Return the options of one share. What each remembers of its failures, it alone writes."""
    return [f"--share={k}/{jobs}", "-m", APART, "-o", f"cache_dir=.pytest_cache/share-{k}"]


def run_together(jobs: int, words: list[str], folder: Path) -> list[tuple[str, int]]:
    """Run all shares; return the name and the exit status of each."""
    shares: list[Share] = []
    ended: list[tuple[str, int]] = []
    with contextlib.ExitStack() as files:
        try:
            with ended_together(shares):
                for k in range(1, jobs + 1):
                    log = files.enter_context((folder / f"{k}.log").open("w+b")) if k > 1 else None
                    shares.append(start(f"share {k} of {jobs}", [*share_of(k, jobs), *words], log))
                for share in shares:
                    ended.append((share[0], finish(share)))
        except KeyboardInterrupt:
            for share in shares[len(ended) :]:
                show(share)
            raise
    alone: list[Share] = []
    with ended_together(alone):
        alone.append(start("alone", ["-m", ALONE, *words], None))
        return [*ended, ("alone", finish(alone[0]))]


def main() -> int:
    """Run the tests; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) // CORES)
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
