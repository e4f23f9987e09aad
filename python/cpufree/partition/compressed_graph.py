"""The graph of a matrix in which rows of one pattern are one vertex.

The unknowns of a node of a finite-element mesh have the same columns: as one vertex they make a
graph with a third of the vertices and a ninth of the edges where there are three of them (Ashcraft
1995, "Compressed graphs and the minimum degree algorithm").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpufree.extension import load_core
from cpufree.matrix.problem import CsrMatrix

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CompressedGraph:
    """An undirected graph without loops.

    `vertex[i]` is the vertex of row i, non-decreasing. The neighbours of vertex v are
    `neighbours[starts[v]:starts[v + 1]]`. `weights[v]` are the entries of its rows, at least 1.
    """

    vertex: Int64s
    starts: Int64s
    neighbours: Int64s
    weights: Int64s


def compress_graph(A: CsrMatrix, merge: bool = True) -> CompressedGraph:
    """Return the graph of A, n rows with sorted columns and a symmetric pattern; on all cores.

    `merge` False: every row is a vertex.
    """
    return CompressedGraph(**load_core().compressed_graph(A.indptr, A.indices, merge))
