"""The command `cpufree doctor`: what this machine can do."""

from __future__ import annotations

from typing import Annotated

import typer

from cpufree.cli import display
from cpufree.cli.commands import EXIT_ENGINE, check_can_write, write_json
from cpufree.cli.rank_commands import as_rank
from cpufree.env import RankEnv


def doctor(
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="Look at the ranks that a launcher has started, too."),
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Findings as JSON; - is stdout.")
    ] = None,
) -> None:
    """Show what this machine can do, what is missing, and how to get it. Needs no GPU."""
    from cpufree.cli import doctor as here
    from cpufree.cli import rank_doctor

    env = RankEnv.read()
    if env is not None and env.rank != 0 and not distributed:
        return  # rank 0 tells it for all
    with as_rank("auto" if distributed else "") as (_, speaks):
        if speaks:
            check_can_write(json_)
        sections = here.examine() if speaks else []
        sections += rank_doctor.examine() if distributed else []
        if speaks:
            if json_:
                write_json(json_, here.to_dict(sections))
            display.report_console(stderr=json_ == "-").print(here.report(sections))
    raise typer.Exit(0 if here.healthy(sections) else EXIT_ENGINE)
