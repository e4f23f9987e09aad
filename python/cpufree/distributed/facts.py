"""What comes over the wire about members, as it may be used and shown: checked, and cleaned."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from cpufree.distributed.wire import Damaged

# Exit codes where a rank fails without one of its own, and where Ctrl-C has ended one.
FAILED, INTERRUPTED = 4, 130
_MOST_TEXT = 4000  # characters
_MOST_NAME = 256
# What every member says of itself, and of which type it is.
_MEMBER = {
    "rank": int,
    "ranks": int,
    "pid": int,
    "version": str,
    "host": str,
    "machine": str,
    "processes": str,
}


def clean(text: object, most: int = _MOST_TEXT) -> str:
    """Return a text in one line that a terminal shows as it is: no control characters."""
    shown = "".join(c if _is_shown(c) else "?" for c in " ".join(str(text)[: 2 * most].split()))
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def _is_shown(character: str) -> bool:
    """Return whether this is neither a control character nor one that turns the writing round."""
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def exit_code(code: object) -> int:
    """Return an exit code that tells of a failure; that of ranks for what is none."""
    return code if type(code) is int and 0 < code < 256 else FAILED


def rank_in(ranks: int, rank: object, otherwise: int) -> int:
    """Return which rank is meant; `otherwise` where there is no such rank."""
    return rank if type(rank) is int and 0 <= rank < ranks else otherwise


def member(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a member says of itself; Damaged where that is nothing of the kind."""
    for name, kind in _MEMBER.items():
        if type(said.get(name)) is not kind:
            raise Damaged(f"a rank without a proper {name}")
    local_rank = said.get("local_rank")
    if not 0 <= said["rank"] < said["ranks"] or not (local_rank is None or type(local_rank) is int):
        raise Damaged("a rank without a proper number")
    kept = {name: said[name] for name in _MEMBER} | {"local_rank": local_rank}
    return {
        name: clean(value, _MOST_NAME) if isinstance(value, str) else value
        for name, value in kept.items()
    }


def members(said: object, ranks: int) -> list[dict[str, Any]]:
    """Return what all members say of themselves, by rank; Damaged where their number is wrong."""
    if not isinstance(said, list) or len(said) != ranks:
        raise Damaged("no list of all ranks")
    return [member(one) for one in said]


def sizes(said: object, data: bytes) -> list[int]:
    """Return how many bytes each part of the data has; Damaged where these are not its sizes."""
    if not isinstance(said, list) or not all(type(size) is int and size >= 0 for size in said):
        raise Damaged("no sizes of parts")
    if sum(said) != len(data):
        raise Damaged("parts that are not the data")
    return said
