"""`python -m cpufree` is the command `cpufree`."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave with its exit code, also on Ctrl-C while it still loads."""
    try:
        from cpufree.cli import timeline

        timeline.begin()
        from cpufree.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
