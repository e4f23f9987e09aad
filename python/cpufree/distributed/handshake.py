"""How a rank and the hub make sure of one another: both know the secret of the job.

    hub:  challenge, a fresh nonce
    rank: hello, a fresh nonce, what it says of itself, and a proof of all that
    hub:  welcome, and a proof of its own
    rank: come

A proof is an HMAC of both nonces and of the words of the rank, with a key made from the secret and
the name of the job. It cannot be used again, as the nonces are new for each connection, nor be sent
back to whom it came from, as it names the side that gives it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
from typing import Any

from cpufree.distributed import facts, wire

_NONCE_BYTES = 32


def key_for(secret: bytes, job: str) -> bytes:
    """Return the key with which ranks of a job prove that they know its secret."""
    return hmac.new(secret, f"cpufree {job}".encode(), hashlib.sha256).digest()


def welcome(connection: socket.socket, key: bytes, latest: float) -> dict[str, Any]:
    """Return what a rank says of itself which has proved that it is one, and has come.

    `latest`: seconds for it to come once it is welcome. Raises OSError where it is a stranger.
    """
    ours = secrets.token_hex(_NONCE_BYTES)
    wire.send(connection, {"do": "challenge", "nonce": ours})
    said = wire.receive_first(connection)
    theirs, text = _text(said, "nonce"), _text(said, "facts")
    if not hmac.compare_digest(_text(said, "proof"), _prove(key, "rank", ours, theirs, text)):
        raise wire.Damaged("a stranger")
    member = facts.member(json.loads(text))
    wire.send(connection, {"do": "welcome", "proof": _prove(key, "hub", ours, theirs, text)})
    # Who has given this knock up meanwhile, and knocks again, does not come in by it.
    if wire.receive_first(connection, latest).get("do") != "come":
        raise wire.Damaged("a rank that does not come")
    return member


def enter(connection: socket.socket, key: bytes, hello: dict[str, Any], seconds: float) -> None:
    """Come to a hub that proves to be that of the job; OSError where it is another's, or none."""
    said = wire.receive_first(connection, seconds)
    if said.get("do") != "challenge":
        raise wire.Damaged("not a hub of cpufree")
    theirs, ours, text = _text(said, "nonce"), secrets.token_hex(_NONCE_BYTES), json.dumps(hello)
    proof = _prove(key, "rank", theirs, ours, text)
    wire.send(connection, {"do": "hello", "nonce": ours, "facts": text, "proof": proof})
    try:
        said = wire.receive_first(connection, seconds)
    except ConnectionError as error:
        raise ConnectionError("it has hung up: it is not of this job") from error
    if not hmac.compare_digest(_text(said, "proof"), _prove(key, "hub", theirs, ours, text)):
        raise wire.Damaged("a hub that does not know the secret of this job")
    wire.send(connection, {"do": "come"})


def _prove(key: bytes, side: str, hub_nonce: str, rank_nonce: str, text: str) -> str:
    """Return what only those can say who know the key."""
    words = json.dumps([side, hub_nonce, rank_nonce, text])  # where each ends is plain
    return hmac.new(key, words.encode(), hashlib.sha256).hexdigest()


def _text(said: dict[str, Any], name: str) -> str:
    text = said.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise wire.Damaged("not a message of cpufree")
    return text
