"""The order of a state's nodes: who reads an array before whom else writes it.

An array has an access node for each of its states, one after the other, and edges lead from one to
the next only where data flow. So nothing in a graph says that the readers of an access node come
before the writers of a later one, and a tree of statements may have them in any order. Edges
without data say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from dace import Memlet, SDFGState, subsets
from dace.sdfg import nodes, utils

from cpufree.dace.values.refusal import Place


def order(graph: Any, place: Place) -> None:
    """Add the edges without data that a graph needs, in all of its states.

    Raises
    ------
    ProgramError
        A node reads points that must have been written, and must not, when it does.
    """
    for sdfg in graph.all_sdfgs_recursive():
        for state in sdfg.states():
            _copy_out_by_tasklets(state)
            _Order(state, place).run()


def _copy_out_by_tasklets(state: SDFGState) -> None:
    """Let tasklets copy values out of maps: trees do not say in which direction a copy goes."""
    for e in list(state.edges()):
        if not isinstance(e.src, nodes.AccessNode) or not isinstance(e.dst, nodes.ExitNode):
            continue
        if e.data.is_empty() or type(e.src.desc(state.sdfg)).__name__.endswith("View"):
            continue
        outer = state.memlet_path(e)[-1].dst
        inner, there = (e.data, None) if e.data.data == e.src.data else (None, e.data)
        there = there or Memlet(data=outer.data, subset=e.data.other_subset)
        if inner is None:
            subset = e.data.other_subset or subsets.Range.from_array(e.src.desc(state.sdfg))
            inner = Memlet(data=e.src.data, subset=subset)
        if there.subset is None or inner.num_elements() != 1 or there.num_elements() != 1:
            continue
        there.wcr, there.debuginfo = e.data.wcr, e.data.debuginfo
        tasklet = state.add_tasklet("copy", {"value"}, {"copied"}, "copied = value")
        tasklet.debuginfo = e.src.debuginfo
        state.add_edge(e.src, None, tasklet, "value", Memlet(data=inner.data, subset=inner.subset))
        state.add_edge(tasklet, "copied", e.dst, e.dst_conn, there)
        state.remove_edge(e)


class _Order:
    """Adds edges to one state."""

    def __init__(self, state: SDFGState, place: Place) -> None:
        self.state, self.place = state, place
        self.scopes = state.scope_dict()
        self.versions: dict[Any, Any] = {}
        """Of each access node, the one whose points it has: of a view, what it is a view of."""
        for node in state.data_nodes():
            self.versions[node] = self._viewed(node)
        self._find_what_follows()

    def run(self) -> None:
        """Order the accesses of each array that has several access nodes."""
        versions = list(dict.fromkeys(self.versions.values()))
        pairs = [
            (a, b)
            for b in versions
            for a in versions
            if a is not b and a.data == b.data and self._follows(a, b)
        ]
        if any([self._copies_apart(b) for b in dict.fromkeys(b for _, b in pairs)]):
            self.scopes = self.state.scope_dict()
            self._find_what_follows()
        for a, b in pairs:
            for write, written in self._writers(b):
                for read, part in (*self._readers(a), (a, None)):
                    self._before(read, write, (part, written), a)

    # --- accesses ---

    def _viewed(self, node: Any) -> Any:
        while self._is_view(node):
            viewed = utils.get_view_node(self.state, node)
            if viewed is None:
                break
            node = viewed
        return node

    def _is_view(self, node: Any) -> bool:
        return type(node.desc(self.state.sdfg)).__name__.endswith("View")

    def _members(self, version: Any) -> list[Any]:
        return [n for n, v in self.versions.items() if v is version]

    def _readers(self, version: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the nodes that read a version of an array, and the edges."""
        members = self._members(version)
        for node in members:
            for e in self.state.out_edges(node):
                if e.dst in members:
                    continue
                # A copy is done where its source is.
                own = isinstance(e.dst, nodes.ExitNode) or _is_copy(e)
                yield (node if own else e.dst), e

    def _writers(self, version: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the nodes that write a version of an array, and the edges."""
        members = self._members(version)
        for node in members:
            for e in self.state.in_edges(node):
                if e.src not in members and not e.data.is_empty():
                    yield (node if isinstance(e.src, nodes.EntryNode) else e.src), e

    def _copies_apart(self, version: Any) -> bool:
        """Let copies into a version have a source of their own, which can be done later."""
        found = False
        for node, e in list(self._writers(version)):
            if not _is_copy(e) or self._is_view(node):
                continue
            source = self.state.add_access(node.data)
            source.debuginfo = node.debuginfo
            self.state.add_edge(source, e.src_conn, e.dst, e.dst_conn, e.data)
            self.state.add_nedge(node, source, Memlet())
            self.state.remove_edge(e)
            self.versions[source] = source
            found = True
        return found

    # --- order ---

    def _find_what_follows(self) -> None:
        """Note, of each node, which nodes come after it."""
        self.after: dict[Any, set[Any]] = {}
        for node in reversed(list(utils.dfs_topological_sort(self.state))):
            found = {node}
            for follower in self.state.successors(node):
                found |= self.after[follower]
            self.after[node] = found

    def _follows(self, one: Any, other: Any) -> bool:
        ends = self._members(other)
        return any(e in self.after[n] for n in self._members(one) for e in ends)

    def _before(self, read: Any, write: Any, parts: tuple[Any, Any], version: Any) -> None:
        """Let what reads be done before what writes."""
        first, second = self._apart(read, write)
        if first is second:
            return
        end = self.state.exit_node(first) if isinstance(first, nodes.EntryNode) else first
        if second in self.after[end]:
            return
        if end in self.after[second] or first in self.after[second]:
            if not _disjoint(*parts):
                self.place.at(write).fail(
                    f"{version.data} is written before it is read as it was, or after: the graph "
                    "does not say which",
                    "keep the values that are needed later in an array of their own",
                )
            return
        self.state.add_nedge(end, second, Memlet())
        later = self.after[second]
        for node, found in self.after.items():
            if end in found:
                self.after[node] = found | later

    def _apart(self, one: Any, other: Any) -> tuple[Any, Any]:
        """Return two nodes of one scope that two nodes are, or are in."""
        ours, theirs = self._around(one), self._around(other)
        common = next(s for s in ours[1:] if s in theirs[1:])
        return tuple(
            next(n for n, s in itertools.pairwise(found) if s is common) for found in (ours, theirs)
        )

    def _around(self, node: Any) -> list[Any]:
        """Return a node, the entry of the map that it is in, of the map around that, ..., None."""
        if isinstance(node, nodes.ExitNode):
            node = self.state.entry_node(node)
        found = [node]
        while node is not None:
            node = self.scopes[node]
            found.append(node)
        return found


def _is_copy(e: Any) -> bool:
    return all(isinstance(n, nodes.AccessNode) for n in (e.src, e.dst)) and not e.data.is_empty()


def _disjoint(read: Any, written: Any) -> bool:
    """Return whether two edges certainly touch other points of one array."""
    if read is None or read.data.is_empty() or read.data.data != written.data.data:
        return read is not None and read.data.is_empty()
    parts = (read.data.subset, written.data.subset)
    return None not in parts and subsets.intersects(*parts) is False
