"""What an option, and an environment variable, is: the form of the schema in `cpufree.options`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a call, a command, or both."""

    name: str
    """Of the argument in Python."""
    kind: str
    """number, count (a whole number), choice, choices (with commas between), devices (numbers of
    GPUs), text, file, switch."""
    default: str | float | int | bool | None
    """None: not given."""
    help: str
    """On the command line, in one sentence."""
    meaning: str = ""
    """In the table of a page, Markdown; "": as `help`."""
    flag: str = ""
    """On the command line; "": --name."""
    short: str = ""
    """On the command line, one letter: -o."""
    choices: tuple[str, ...] = ()
    """Of a choice: all values; of a text: words that are no file, name or number."""
    least: float | None = None
    most: float | None = None
    above: bool = False
    """Whether a value must be above the least one."""
    form: str = ""
    """What a value looks like, its unit for one: SECONDS, FILE, N."""
    metavar: str = ""
    """What the help of the command line calls a value; "": its choices, or its form."""
    noun: str = ""
    """What errors call it; "": its name."""
    otherwise: str = ""
    """What holds where it is not given and the default does not say it."""
    takes_auto: bool = False
    takes_infinity: bool = False
    """Of a number."""
    required: bool = False
    """Whether a command needs it."""

    @property
    def preset(self) -> Any:
        """The default, as the parameter of a command takes it."""
        return self.default

    @property
    def called(self) -> str:
        """What errors call it."""
        return self.noun or self.name

    @property
    def spelling(self) -> str:
        """The flag on the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def takes(self) -> str:
        """What a value may be, as errors say it after "give"."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "choices":
            return f"{' or '.join(self.choices)}, or one for each axis with commas between"
        if self.kind == "devices":
            return "auto, all, or device numbers such as 0,2-5"
        if self.kind == "number":
            return a_number(self.least or 0.0, self.above, self.takes_infinity)
        most = "" if self.most is None else f" to {int(self.most)}"
        auto = "'auto' or " if self.takes_auto else ""
        return f"{auto}a whole number from {int(self.least or 0)}{most}"

    @property
    def shown_form(self) -> str:
        """What follows the flag in a table: words to choose from, and what else a value may be."""
        words = [*(["auto"] if self.takes_auto else []), *self.choices]
        return "|".join([*words, *([self.form] if self.form else [])])

    def row(self) -> str:
        """Return the option as a row of a Markdown table."""
        flag = " ".join(filter(None, (self.spelling, self.shown_form.replace("|", "\\|"))))
        name = f"`{self.short}`, `{flag}`" if self.short else f"`{flag}`"
        cells = (name, self.meaning or self.help, self._default_text())
        return "| " + " | ".join(cells).rstrip() + " |"

    def _default_text(self) -> str:
        if self.otherwise:
            return self.otherwise
        if self.default is None or isinstance(self.default, bool):
            return ""
        return f"`{plain(self.default)}`"


@dataclass(frozen=True)
class Variable:
    """An environment variable that the package reads."""

    name: str
    takes: str
    """What it is, and which values it takes."""


def a_number(least: float, above: bool, infinite: bool = False) -> str:
    """Return which numbers are taken, as errors say it after "give"."""
    number = "a number" if infinite else "a finite number"
    return f"{number} above {least:g}" if above else f"{number}, {least:g} or more"


def plain(value: float | int | str) -> str:
    """Return a default as text: 1e-5, 0, auto."""
    if not isinstance(value, float):
        return str(value)
    return re.sub(r"e-0*", "e-", f"{value:g}")
