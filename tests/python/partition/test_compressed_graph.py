"""Graphs in which rows of one pattern are one vertex."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cpufree.matrix.load import as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition import compressed_graph as module
from cpufree.partition.compressed_graph import compress_graph


def nodes(count: int, unknowns: int) -> CsrMatrix:
    """Return a chain of nodes with so many unknowns each, all of which are coupled."""
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


@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    random = sp.random_array((60, 60), density=0.1, rng=np.random.default_rng(1))
    A = as_csr(sp.csr_array(sp.kron(random + random.T + sp.eye_array(60), np.ones((2, 2)))))
    whole = compress_graph(A)
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    parts = compress_graph(A)
    for name in ("vertex", "starts", "neighbours", "weights"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    assert whole.vertex.max() == 59


def test_rows_of_one_pattern_are_apart_where_they_are_not_to_be_merged() -> None:
    graph = compress_graph(nodes(3, 2), merge=False)
    assert graph.vertex.tolist() == list(range(6))
    assert graph.starts.tolist() == [0, 3, 6, 11, 16, 19, 22]
