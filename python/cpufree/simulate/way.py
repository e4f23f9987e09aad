"""What a way of communication is: how a PE computes, sends and receives, in a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpufree.simulate.graph import Builder, Flow, Ids, Numbers, repeat


@dataclass(frozen=True)
class Messages:
    """From each of `src` to its counterpart in `dst`; more than one for a pair is allowed."""

    src: Numbers
    dst: Numbers
    bytes: Numbers

    def ordered(self) -> Messages:
        """Return them by sender."""
        order = np.argsort(self.src, kind="stable")
        return Messages(self.src[order], self.dst[order], self.bytes[order])

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.src)


@dataclass(frozen=True)
class Sent:
    """Messages on their way, by sender."""

    messages: Messages
    arrival: Ids


class Way:
    """A way of communication. Times of phases are seconds, by PE."""

    name = ""
    what = ""
    persistent = False
    """One kernel for the whole program."""

    def __init__(self, builder: Builder) -> None:
        self.b = builder
        self.c = builder.cluster

    def once(self) -> float:
        """Return what the program costs before its first and after its last operation."""
        return self.c["gpu.launch"] + self.c["gpu.teardown"] if self.persistent else 0.0

    def kernel(self, flow: Flow, seconds: float | Numbers, barrier: bool = True) -> None:
        """Compute for so long, after what the PE has done and received.

        `barrier`: what follows needs the results of all threads; else each goes on with its own.
        """
        raise NotImplementedError

    def send(self, flow: Flow, messages: Messages) -> Sent:
        """Send what the last phase has computed."""
        raise NotImplementedError

    def recv(self, flow: Flow, sent: Sent) -> None:
        """Wait for messages."""
        raise NotImplementedError

    def combine(self, flow: Flow, seconds: float | Numbers) -> None:
        """Add up what has come: as a phase, where nothing else says how."""
        self.kernel(flow, seconds)

    def exchange_in_node(self, flow: Flow, messages: Messages) -> None:
        """Exchange scalars in each node at once, where the way is a persistent kernel."""
        self.recv(flow, self.send(flow, messages))

    def before_collective(self, flow: Flow) -> None:
        """Make ready for a collective that a library does."""

    def after_collective(self, flow: Flow) -> None:
        """Go on after it."""

    def end_round(self, flow: Flow) -> None:
        """Let the next round follow this one."""
        repeat(self.b, flow)

    def arrivals(self, sent: Sent) -> tuple[Numbers, Ids]:
        """Return receivers and arrivals, by receiver."""
        order = np.argsort(sent.messages.dst, kind="stable")
        return sent.messages.dst[order], sent.arrival[order]

    def transmit(self, messages: Messages, after: Ids | None) -> tuple[Ids, Ids]:
        """Put messages onto the wire."""
        return self.b.message(messages.src, messages.dst, messages.bytes, after)
