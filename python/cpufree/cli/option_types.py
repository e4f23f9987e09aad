"""Options of commands out of the schema in `cpufree.options`, and what is said of wrong ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer

from cpufree.engines.choices import valid
from cpufree.env import gpu_numbers
from cpufree.errors import InvalidInputError
from cpufree.options import LARGEST_COUNT, Option
from cpufree.text import meant

# The error of the command line that is not about a single option of Typer's: its name differs from
# version to version of Typer, what BadParameter derives from does not.
UsageError: type[Any] = typer.BadParameter.__mro__[1]
_LONGEST_NUMBER = 20  # digits; int() refuses thousands of them


def parse(option: Option, text: Any) -> Any:
    """Return the value of an option that a word of the command line gives.

    Raises:
        UsageError: it is none. The message has the word, and what the option takes.
    """
    if not isinstance(text, str):  # a default
        return text
    try:
        return _value(option, text)
    except ValueError as error:
        why = f" ({error})" if option.kind == "devices" else meant(text, option.choices)
        raise UsageError(f"{option.spelling} is '{text}': give {option.takes}{why}") from None


def _value(option: Option, text: str) -> Any:
    """Return the value of an option; ValueError where the text is none."""
    if option.kind == "number":
        return valid(option, float(text))
    if option.kind == "count":
        plain = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
        return valid(option, int(text) if plain else text)
    if option.kind == "choice":
        return valid(option, text)
    if option.kind == "choices":
        for word in text.split(","):
            if word not in option.choices:
                raise InvalidInputError(word)
    if option.kind == "devices":
        gpu_numbers(text)
    return text


def refuse(option: Option, value: object, why: object) -> Any:
    """Return the error for a value that does not suit the others that are given."""
    return UsageError(f"{option.spelling} is '{value}': {why}")


def as_option(option: Option) -> Any:
    """Return what the command line knows of an option, for Annotated."""
    flags = [option.spelling, *([option.short] if option.short else [])]
    if option.kind == "switch":
        if option.default is True:
            flags = [f"{option.spelling}/--no-{option.name}"]
        return typer.Option(*flags, help=option.help)
    bounded = option.kind == "count" and option.most not in (None, LARGEST_COUNT)
    limit = f" At most {option.most}." if bounded else ""
    return typer.Option(
        *flags,
        parser=_parser(option),
        metavar=option.metavar or option.shown_form,
        help=option.help + limit,
        autocompletion=_completion(option),
    )


def as_argument(option: Option) -> Any:
    """Return what the command line knows of an argument, for Annotated."""
    return typer.Argument(
        parser=_parser(option),
        metavar="|".join(option.choices) or option.form,
        help=option.help,
        autocompletion=_completion(option),
        show_default=False,
    )


def _parser(option: Option) -> Callable[[str], Any]:
    """Return `parse` for an option, with the name that Typer before 0.20 asks for."""

    def parser(text: str) -> Any:
        return parse(option, text)

    return parser


def _completion(option: Option) -> Callable[[str], list[str]] | None:
    """Return the function that completes a word to what an option takes; None: to files."""
    words = [*(["auto"] if option.takes_auto else []), *option.choices]
    if not words:
        return None
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


Command = Callable[..., None]


def with_options(table: Sequence[Option]) -> Callable[[Command], Command]:
    """Return a decorator of a command that takes these options as one dictionary, `given`."""

    def decorate(command: Command) -> Command:
        def call(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in table}
            command(**values, given=given)

        return with_parameters(command, "given", map(as_parameter, table), call)

    return decorate


def as_parameter(option: Option) -> inspect.Parameter:
    """Return an option as a parameter of a command."""
    kind: Any = bool if option.kind == "switch" else str
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.required else option.default,
        annotation=Annotated[kind, as_option(option)],
    )


def with_parameters(
    command: Command, place: str, added: Iterable[inspect.Parameter], call: Command
) -> Command:
    """Return a command whose parameters are those of `command` but `place`, and those added.

    `call` takes them all.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [parameter for parameter in own if parameter.name != place]
    parameters += list(added)

    def spread(**values: Any) -> None:
        call(**values)

    spread.__name__, spread.__doc__ = command.__name__, command.__doc__
    spread.__annotations__ = {one.name: one.annotation for one in parameters}
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return spread


def usage_line(error: Any) -> str:
    """Return one line for what is wrong with the words of a command line."""
    said = " ".join(error.format_message().split())
    said = said.removeprefix("Invalid value for ").removeprefix("Invalid value: ").rstrip(".")
    context = getattr(error, "ctx", None)
    more = f"; {context.command_path} --help lists what it takes" if context else ""
    return f"{said[:1].lower()}{said[1:]}{more}"
