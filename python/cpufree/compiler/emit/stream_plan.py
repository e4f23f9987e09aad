"""How a kernel divides arrays among warps that stream rows of them."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.compiler.passes.levels import Chain
from cpufree.compiler.passes.rounds import Rounds

WARP = 32


@dataclass(frozen=True)
class StreamPlan:
    """How a program's rounds are streamed.

    Attributes
    ----------
    rounds : Rounds
        Of its loop.
    turns : int
        Of a round.
    columns : int
        Of a lane of a warp.
    strip : int
        Columns of a strip: those of all lanes.
    chunks : int
        Of a PE's rows.
    unrolled, ahead : int
        Rows that are written out, so that registers need not be copied; rows on their way from
        memory.
    threads, resident, blocks : int
        Of a block; blocks of a multiprocessor, and of a PE.
    """

    rounds: Rounds
    turns: int
    columns: int
    strip: int
    chunks: int
    unrolled: int
    ahead: int
    threads: int
    resident: int
    blocks: int

    def halo(self, chain: Chain) -> tuple[int, int]:
        """Return the columns of a strip before and behind those that are stored: whole lanes."""
        lanes = -(-chain.left // self.columns), -(-chain.right // self.columns)
        return lanes[0] * self.columns, lanes[1] * self.columns

    def units(self, width: int, chain: Chain) -> int:
        """Return how many parts warps have to do: strips at edges are in twice as many chunks."""
        left, right = self.halo(chain)
        across = -(-width // (self.strip - left - right))
        return (across + min(across, 2)) * self.chunks

    def describe(self) -> str:
        """Return what the plan is, in words."""
        return (
            f"values lie in memory; warps stream rows of strips of {self.strip} columns through "
            f"registers, for {self.turns} turns at a time"
        )
