"""Processes that work on one system together: how they meet, talk, and end together.

`join` makes this process a member of the team that its launcher has started; `current` is that
team. Rank 0 has a hub, to which all members are connected over TCP; the hub answers once all have
asked, and tells all where one has failed. What travels this way is small, or rare: the vectors of a
solve stay in the engines' own memory.
"""

from cpufree.distributed.meeting import current, is_rank, join, leave, settle
from cpufree.distributed.team import Team, Verdict

__all__ = ["Team", "Verdict", "current", "is_rank", "join", "leave", "settle"]
