"""`python -m cpufree` is the command `cpufree`."""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave with its exit code, also on Ctrl-C while it still loads."""
    try:
        import signal  # a launcher has held Ctrl-C back until now

        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        from cpufree import cli

        if sys.argv[1:2] and sys.argv[1] in cli.VERSION_WORDS:
            _say(cli.version_line())  # without what commands need, most of which is NumPy
            return
        from cpufree.cli import timeline

        timeline.begin()
        from cpufree.cli.app import main as run

        run()
    except (KeyboardInterrupt, RuntimeError) as error:
        # As RuntimeError, Python 3.11 passes on what comes while a class is made.
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(INTERRUPTED)


def _say(line: str) -> None:
    """Print a line; a reader that has left already makes no error."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end


if __name__ == "__main__":
    main()
