"""What cannot be taken is refused with its line, the reason, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import cpufree.dace  # noqa: E402
from cpufree.errors import InvalidInputError, ProgramError  # noqa: E402

N = dace.symbol("N", dace.int64)
peer, tag = (dace.symbol(n, dace.int32) for n in ("peer", "tag"))
MPI_Request = dace.opaque("MPI_Request")


@dace.program
def pair(A: dace.float64[N]):
    req = np.empty((2,), dtype=MPI_Request)
    dace.comm.Isend(A[1:3], peer, tag, req[0])
    dace.comm.Irecv(A[4:6], peer, 7, req[1])
    dace.comm.Waitall(req)


def ranks_of(**symbols: Any) -> Any:
    """Arguments of two ranks: symbols by rank, or the same for both."""

    def of(rank: int, size: int) -> dict[str, Any]:
        own = {k: v[rank] if isinstance(v, list) else v for k, v in symbols.items()}
        return {"A": np.arange(8.0) + 10 * rank, **own}

    return of


PAIR = cpufree.dace.compile(pair)


def test_a_pair_of_messages_is_right() -> None:
    of = ranks_of(peer=[1, 0], tag=7)
    given = [of(r, 2) for r in range(2)]
    PAIR.run_ranks(lambda r, n: given[r], 2, engine="cpu_threads")
    assert given[0]["A"].tolist() == [0, 1, 2, 3, 11, 12, 6, 7]
    assert given[1]["A"].tolist() == [10, 11, 12, 13, 1, 2, 16, 17]


def test_a_rank_may_send_to_itself() -> None:
    A = np.arange(8.0)
    PAIR.run_ranks(lambda r, n: {"A": A, "peer": 0, "tag": 7}, 1, engine="cpu_threads")
    assert A.tolist() == [0, 1, 2, 3, 1, 2, 6, 7]


def test_messages_to_nobody_are_none() -> None:
    of = ranks_of(peer=cpufree.dace.PROC_NULL, tag=7)
    given = [of(r, 2) for r in range(2)]
    PAIR.run_ranks(lambda r, n: given[r], 2, engine="cpu_threads")
    assert [g["A"].tolist() for g in given] == [of(r, 2)["A"].tolist() for r in range(2)]


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ({"peer": [1, 0], "tag": 6}, r"rank 0 has [01] sends? with tag [67] to rank 1, which has"),
        ({"peer": [1, -1], "tag": 7}, "rank 0 has 1 sends with tag 7 to rank 1, which has 0"),
        ({"peer": [1, 2], "tag": 7}, "rank 1 names rank 2, and there are 2"),
    ],
)
def test_messages_that_do_not_match_are_refused(symbols: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        PAIR.lower_ranks(ranks_of(**symbols), 2)
    assert "test_refusals.py:" in str(caught.value)
    assert caught.value.line in range(21, 27)


@dace.program
def shapes(A: dace.float64[N]):
    if peer == 1:
        dace.comm.Send(A[1:3], 1, 0)
    else:
        dace.comm.Recv(A[1:4], 0, 0)


def test_other_shapes_are_refused() -> None:
    program = cpufree.dace.compile(shapes)
    with pytest.raises(ProgramError, match=r"sends float64 \[2\] of A.*receives float64 \[3\]"):
        program.lower_ranks(ranks_of(peer=[1, 0]), 2)


@dace.program
def loops(A: dace.float64[N], T: dace.int64):
    if peer == 1:
        for _t in range(T):
            dace.comm.Send(A[1:3], 1, 0)
    else:
        for _t in range(T + 1):
            dace.comm.Recv(A[1:3], 0, 0)


def test_other_loops_are_refused() -> None:
    program = cpufree.dace.compile(loops)
    of = ranks_of(peer=[1, 0])
    with pytest.raises(ProgramError, match="sends in other loops or branches than rank 1"):
        program.lower_ranks(lambda r, n: {**of(r, n), "T": 4}, 2)


@dace.program
def tags(A: dace.float64[N], T: dace.int64):
    for t in range(T):
        if peer == 1:
            dace.comm.Send(A[1:3], 1, t)
            dace.comm.Send(A[3:5], 1, t + 1)
        else:
            dace.comm.Recv(A[1:3], 0, t)
            dace.comm.Recv(A[3:5], 0, t + 1)


def test_tags_that_may_be_the_same_are_refused() -> None:
    program = cpufree.dace.compile(tags)
    of = ranks_of(peer=[1, 0])
    with pytest.raises(ProgramError, match="which may be the same"):
        program.lower_ranks(lambda r, n: {**of(r, n), "T": 4}, 2)


@dace.program
def forgotten(A: dace.float64[N], T: dace.int64):
    req = np.empty((2,), dtype=MPI_Request)
    for _t in range(T):
        dace.comm.Isend(A[1:3], peer, 0, req[0])
        dace.comm.Irecv(A[4:6], peer, 0, req[1])
    dace.comm.Waitall(req)


def test_a_message_that_is_not_waited_for_is_refused() -> None:
    program = cpufree.dace.compile(forgotten)
    of = ranks_of(peer=[1, 0])
    with pytest.raises(ProgramError, match="not waited for in the block where it begins"):
        program.lower_ranks(lambda r, n: {**of(r, n), "T": 4}, 2)


def test_messages_in_a_call_without_ranks_are_refused() -> None:
    with pytest.raises(ProgramError, match="run_ranks"):
        PAIR.run((np.zeros(8),), {"peer": 1, "tag": 7})


@dace.program
def inverse(A: dace.float64[N, N], B: dace.float64[N, N]):
    B[:] = np.linalg.inv(A)


@dace.program
def gathered(A: dace.float64[N, N], B: dace.float64[N, N]):
    for i, j in dace.map[0:N, 0:N]:
        k = dace.int64(A[i, j])
        B[i, j] = A[k, j]


@dace.program
def returned(A: dace.float64[N, N]):
    if A[0, 0] > 1.0:
        return
    A[:] = A + 1.0
    for t in range(3):
        if A[0, 0] > 2.0:
            return
        A[:] = A * t


@dace.program
def waiting(A: dace.float64[N, N]):
    for i in dace.map[0:N]:
        while A[i, 0] > 1.0:
            A[i, 0] = A[i, 0] * 0.5


@dace.program
def spaced(A: dace.float64[N, N]):
    A[0, 0:9] = np.linspace(0.0, 2.0, 9)


@dace.program
def read_beyond(A: dace.float64[200, 200]):
    A[0, 0] = A[1, 200]


@dace.program
def summed_beyond(A: dace.float64[200, 200]):
    A[0, 0] = np.sum(A[1, 100:201])


@dace.program
def written_beyond(A: dace.float64[200, 200]):
    A[200, 0] = 1.0


@pytest.mark.parametrize(
    ("program", "message", "line"),
    [
        (
            spaced,
            "node linspace: this function has no counterpart(.|\n)*the call",
            "2.0, 9)",
        ),
        (read_beyond, "200 points along axis 1, and is read at 200\n", "A[1, 200]"),
        (summed_beyond, "200 points along axis 1, and is read at 100 to 200\n", "100:201"),
        (written_beyond, "200 points along axis 0, and is written at 200\n", "A[200, 0]"),
        (inverse, "the library node Inv is not taken", "B[:] = np.linalg.inv(A)"),
        (gathered, "the index k is a value of an array", "B[i, j] = A[k, j]"),
        (returned, "a return before the end", "return"),
        (waiting, "a while loop inside a map", "while A[i, 0] > 1.0:"),
    ],
)
def test_what_has_no_counterpart_is_refused(program: Any, message: str, line: str) -> None:
    arrays = [np.zeros((200, 200)) for _ in program.f.__annotations__]
    with pytest.raises(ProgramError, match=message) as caught:
        cpufree.dace.compile(program).run(tuple(arrays))
    assert line in str(caught.value)
    assert caught.value.line > 0


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="peer, tag has no value"):
        PAIR.lower_ranks(lambda r, n: {"A": np.zeros(8)}, 2)
    with pytest.raises(InvalidInputError, match="is declared as"):
        PAIR.lower_ranks(lambda r, n: {"A": np.zeros(8, np.float32), "peer": 0, "tag": 7}, 1)
    with pytest.raises(InvalidInputError, match="takes a program or graph"):
        cpufree.dace.compile(3)
