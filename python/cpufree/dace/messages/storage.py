"""Which arrays of a graph must lie in symmetric memory: those that communication touches.

After the thesis' NVSHMEMArray. `cpufree` lays out all arrays of a rank alike, so its own kernels
need no marks; the transformation is there for graphs that others compile, and to look at.
"""

from __future__ import annotations

from typing import Any

from dace import SDFG, dtypes, properties
from dace.transformation import pass_pipeline as ppl

from cpufree.dace.messages import events, signals

if not hasattr(dtypes.StorageType, "Symmetric"):
    dtypes.StorageType.register("Symmetric")

_OF_MESSAGES = ("_buffer", "_inbuffer", "_outbuffer")
_ONE_SIDED = ("_source", "_dest", "_signal")


@properties.make_properties
class SymmetricArrays(ppl.Pass):  # type: ignore[misc]
    """Gives arrays that are sent, received, put, fetched or raised the storage `Symmetric`."""

    CATEGORY = "Memory"

    def modifies(self) -> Any:
        """Return what the pass changes: descriptors."""
        return ppl.Modifies.Descriptors

    def should_reapply(self, modified: Any) -> bool:
        """Return whether it is to run again: where nodes have changed."""
        return bool(modified & ppl.Modifies.Nodes)

    def apply_pass(self, sdfg: SDFG, _: Any) -> set[str] | None:
        """Mark the arrays of a graph; return their names, None where there are none."""
        found = symmetric_arrays(sdfg)
        for name in found:
            sdfg.arrays[name].storage = dtypes.StorageType.Symmetric
        return found or None


def symmetric_arrays(sdfg: SDFG) -> set[str]:
    """Return the names of the arrays of a graph that messages, puts and signals touch."""
    from dace.sdfg import nodes

    found: set[str] = set()
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, nodes.LibraryNode):
            continue
        touched: tuple[str, ...] = _OF_MESSAGES if events.knows(node) else ()
        touched = _ONE_SIDED if signals.knows(node) else touched
        for edge in state.all_edges(node):
            connector = edge.dst_conn if edge.dst is node else edge.src_conn
            if connector in touched and edge.data.data is not None:
                found.add(_root(state.sdfg, state, edge))
    return found


def _root(sdfg: Any, state: Any, edge: Any) -> str:
    """Return the array that a view at the end of an edge is of."""
    from dace.sdfg import utils

    name = str(edge.data.data)
    other = edge.src if edge.dst is not edge.src and hasattr(edge.src, "data") else edge.dst
    while type(sdfg.arrays[name]).__name__.endswith("View"):
        viewed = utils.get_view_node(state, other)
        if viewed is None:
            break
        other, name = viewed, str(viewed.data)
    return name
