"""Graphs in which rows of one pattern are one vertex."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition.compressed_graph import compress_graph


def nodes(count: int, unknowns: int) -> CsrMatrix:
    """Return a chain of nodes with a number of unknowns each, all of which are coupled."""
    chain = sp.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(count, count))
    return as_csr(sp.kron(chain, np.ones((unknowns, unknowns)), format="csr"))


@pytest.mark.parametrize("unknowns", [1, 2, 3, 5])
def test_unknowns_of_a_node_are_one_vertex(unknowns: int) -> None:
    graph = compress_graph(nodes(7, unknowns))
    assert graph.vertex.tolist() == np.repeat(np.arange(7), unknowns).tolist()
    assert graph.starts.tolist() == [0, 1, 3, 5, 7, 9, 11, 12]
    assert graph.neighbours.tolist() == [1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5]
    assert graph.weights.tolist() == [w * unknowns**2 for w in (2, 3, 3, 3, 3, 3, 2)]


def test_rows_that_differ_are_vertices_of_their_own() -> None:
    A = as_csr(sp.diags_array([1.0, 4.0, 1.0], offsets=[-3, 0, 3], shape=(50, 50), format="csr"))
    graph = compress_graph(A)
    assert graph.vertex.tolist() == list(range(50))
    rows = [
        graph.neighbours[a:b].tolist() for a, b in zip(graph.starts, graph.starts[1:], strict=False)
    ]
    assert rows == [[k for k in (i - 3, i + 3) if 0 <= k < 50] for i in range(50)]


def test_rows_without_entries_are_vertices_of_their_own() -> None:
    A = as_csr(sp.csr_array((4, 4)))
    graph = compress_graph(A)
    assert graph.vertex.tolist() == [0, 1, 2, 3]
    assert graph.starts.tolist() == [0] * 5
    assert graph.weights.tolist() == [1] * 4


def test_graph_of_a_random_pattern_is_that_of_its_definition() -> None:
    random = sp.random_array((2500, 2500), density=0.002, rng=np.random.default_rng(1))
    A = as_csr(sp.csr_array(sp.kron(random + random.T + sp.eye_array(2500), np.ones((2, 2)))))
    graph = compress_graph(A)
    rows = [A.indices[a:b].tolist() for a, b in zip(A.indptr, A.indptr[1:], strict=False)]
    vertex = np.cumsum([k == 0 or rows[k] != rows[k - 1] for k in range(len(rows))]) - 1
    assert graph.vertex.tolist() == vertex.tolist()
    assert graph.vertex.max() < 2500
    for v, first in enumerate(np.searchsorted(vertex, np.arange(vertex[-1] + 1)).tolist()):
        near = sorted(set(vertex[rows[first]].tolist()) - {v})
        assert graph.neighbours[graph.starts[v] : graph.starts[v + 1]].tolist() == near


def test_columns_that_are_no_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="ascending columns"):
        load_core().compressed_graph(np.array([0, 1]), np.array([7], np.int32), True)


def test_rows_of_one_pattern_are_apart_where_they_are_not_to_be_merged() -> None:
    graph = compress_graph(nodes(3, 2), merge=False)
    assert graph.vertex.tolist() == list(range(6))
    assert graph.starts.tolist() == [0, 3, 6, 11, 16, 19, 22]
