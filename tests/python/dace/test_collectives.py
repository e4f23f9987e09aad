"""Collectives, one-sided strided fetches, and products of matrices whose panels go round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import ranks_on_cpu  # noqa: E402
from dace_cases import compiled  # noqa: E402

import cpufree.dace  # noqa: E402


def parts(seed: int, ranks: int, *shape: int) -> list[Any]:
    whole = np.random.default_rng(seed).standard_normal((ranks, *shape))
    return [part.copy() for part in whole]


def collect_of(ranks: int, steps: int) -> list[dict[str, Any]]:
    a, b, columns = parts(1, ranks, 6), parts(2, ranks, 6), parts(3, ranks, 6, 5)
    return [
        {"a": a[r], "b": b[r], "columns": columns[r], "out": np.zeros(6), "steps": steps,
         "rank": r, "size": ranks}
        for r in range(ranks)
    ]  # fmt: skip


def collect_plain(given: list[dict[str, Any]], steps: int) -> None:
    """What collect does, all ranks in turn."""
    root = len(given) - 1
    for t in range(1, steps + 1):
        for own in given:
            own["b"][:] = given[root]["b"]
            own["out"][:] = own["out"] + own["b"] * t
        fetched = [given[(r + 1) % len(given)]["columns"][:, 2].copy() for r in range(root + 1)]
        for own, column in zip(given, fetched, strict=True):
            own["a"][:] = 0.5 * own["a"] + own["b"] + column
            own["columns"][:, 2] = own["columns"][:, 2] + 1.0


def slow(*values: Any) -> Any:
    """A C++ compiler takes a second or two for each."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("ranks", [slow(1), slow(2), 3, slow(8)])
def test_collectives_and_strided_fetches_give_the_bits_of_plain_numpy(ranks: int) -> None:
    given, wanted = collect_of(ranks, 4), collect_of(ranks, 4)
    collect_plain(wanted, 4)
    compiled("collect").run_ranks(
        lambda r, n: given[r], ranks, engine="cpu_threads", wait_limit=300
    )
    for ours, theirs in zip(given, wanted, strict=True):
        for key in ("a", "b", "columns", "out"):
            np.testing.assert_array_equal(ours[key], theirs[key], err_msg=key)


def allreduce_graph(op: str, turns: int) -> Any:
    """Return a graph of DaCe's: in turns, `a` is joined over all ranks, and `out` gets its half.

    Its front end takes the call with mpi4py only, which need not be installed.
    """
    from dace.libraries.comm.nodes.allreduce import Allreduce

    graph = dace.SDFG(f"joined_{op}")
    for name in ("a", "out"):
        graph.add_array(name, [6], dace.float64)
    last = None
    for _ in range(turns):
        state = graph.add_state_after(last) if last else graph.add_state()
        node = Allreduce("_Allreduce_", f"MPI_{op}")
        everything = dace.Memlet("a[0:6]")
        state.add_edge(state.add_read("a"), None, node, "_inbuffer", everything)
        joined = state.add_access("a")
        state.add_edge(node, "_outbuffer", joined, None, dace.Memlet("a[0:6]"))
        state.add_mapped_tasklet(
            "halve", {"i": "0:6"}, {"x": dace.Memlet("a[i]")}, "y = 0.5 * x",
            {"y": dace.Memlet("out[i]")}, input_nodes={"a": joined}, external_edges=True,
        )  # fmt: skip
        last = state
    return graph


@pytest.mark.parametrize(("op", "ranks"), [("SUM", 3), slow("MAX", 2), slow("MIN", 4)])
def test_allreduce_joins_in_the_order_of_ranks(op: str, ranks: int) -> None:
    given = [{"a": a, "out": np.zeros(6)} for a in parts(4, ranks, 6)]
    program = cpufree.dace.compile(allreduce_graph(op, 2))
    program.run_ranks(lambda r, n: given[r], ranks, engine="cpu_threads", wait_limit=300)
    join = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum}[op]
    wanted = parts(4, ranks, 6)
    for _ in range(2):
        total = wanted[0]
        for other in wanted[1:]:
            total = join(total, other)
        wanted = [total] * ranks
    for own in given:
        np.testing.assert_array_equal(own["a"], total)
        np.testing.assert_array_equal(own["out"], 0.5 * total)


def gemm_of(ranks: int) -> list[dict[str, Any]]:
    A, B, C = parts(1, ranks, 6, 6 * ranks), parts(2, ranks, 6, 5), parts(3, ranks, 6, 5)
    return [{"lA": A[r], "lB": B[r], "lC": C[r], "rank": r, "size": ranks} for r in range(ranks)]


def assert_product(given: list[dict[str, Any]], ranks: int) -> None:
    start = gemm_of(ranks)
    A, B, C = (np.concatenate([own[k] for own in start]) for k in ("lA", "lB", "lC"))
    found = np.concatenate([own["lC"] for own in given])
    np.testing.assert_allclose(found, C + A @ B, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ranks", [slow(1), 2, slow(5)])
def test_a_distributed_product_of_matrices(ranks: int) -> None:
    given = gemm_of(ranks)
    compiled("ring_gemm").run_ranks(lambda r, n: given[r], ranks, engine="cpu_threads")
    assert_product(given, ranks)


def test_a_distributed_product_by_many_blocks() -> None:
    given = gemm_of(2)
    program = compiled("ring_gemm")
    lowered = program._lowered_ranks(program._of_ranks(lambda r, n: given[r], 2))
    arrays = [{k: v for k, v in own.items() if isinstance(v, np.ndarray)} for own in given]
    ranks_on_cpu.run(lowered, arrays, 3)
    assert_product(given, 2)
