"""Library nodes of one-sided communication, and their syntax under `dace.comm.`.

| call | what it does |
| --- | --- |
| `PutmemSignal(dest, source, signal[k], value, pe)` | puts a view to `dest` on rank pe, then \
raises `signal[k]` there |
| `SignalWait(signal[k], value)` | waits until this rank's `signal[k]` >= value |
| `SignalOp(signal[k], value, pe)` | raises a signal |
| `Putmem(dest, source, pe)`, `Iput(dest, source, pe)` | puts a view |
| `P(dest, value, pe)` | puts one number |
| `Getmem(dest, source, pe)`, `Iget(dest, source, pe)` | fetches `source` of rank pe |
| `Quiet()` | what was put before is there before what is put or raised later |

`dest` and `source` are parts of arrays that all ranks have. How a view is copied its shape says.
"""

from __future__ import annotations

from typing import Any

import dace
import dace.library
from dace import dtypes, properties
from dace.frontend.common import op_repository as oprepo
from dace.memlet import Memlet
from dace.sdfg import nodes


@dace.library.node
class OneSided(nodes.LibraryNode):  # type: ignore[misc]
    """A put, a get, a signal or a wait: `verb` says which."""

    implementations: dict[str, Any] = {}  # noqa: RUF012  (DaCe fills it)
    default_implementation = None
    verb = properties.Property(dtype=str, default="", desc="what the node does")

    def __init__(self, verb: str = "", *args: Any, **kwargs: Any) -> None:
        super().__init__(verb or "OneSided", *args, **kwargs)
        self.verb = verb

    def has_side_effects(self, sdfg: Any) -> bool:
        """Return True: others see what it does."""
        return True


def _node(pv: Any, state: Any, verb: str) -> OneSided:
    node = OneSided(verb)
    node.debuginfo = getattr(pv, "current_lineinfo", None)
    state.add_node(node)
    return node


def _read(state: Any, node: OneSided, connector: str, what: Any) -> None:
    """Let a node read a part of an array."""
    name, subset = _part(state.sdfg, what)
    node.add_in_connector(connector)
    state.add_edge(state.add_read(name), None, node, connector, Memlet(data=name, subset=subset))


def _written(state: Any, node: OneSided, connector: str, what: Any) -> None:
    """Let a node write a part of an array."""
    name, subset = _part(state.sdfg, what)
    node.add_out_connector(connector)
    state.add_edge(node, connector, state.add_write(name), None, Memlet(data=name, subset=subset))


def _part(sdfg: Any, what: Any) -> tuple[str, Any]:
    from dace import subsets

    if isinstance(what, tuple):
        return str(what[0]), what[1]
    return str(what), subsets.Range.from_array(sdfg.arrays[what])


def _number(pv: Any, state: Any, node: OneSided, connector: str, value: Any, kind: Any) -> None:
    """Let a node read a number: an expression, or an element of an array."""
    if isinstance(value, tuple) or (isinstance(value, str) and value in state.sdfg.arrays):
        _read(state, node, connector, value)
        return
    if isinstance(value, list) and len(value) == 1:  # an expression that DaCe has evaluated
        value = value[0]
    name, _ = state.sdfg.add_scalar("__number", kind, transient=True, find_new_name=True)
    pv.variables[name] = name
    access = state.add_access(name)
    tasklet = state.add_tasklet("_set_number_", {}, {"__out"}, f"__out = {value}")
    state.add_edge(tasklet, "__out", access, None, Memlet(data=name, subset="0"))
    node.add_in_connector(connector)
    state.add_edge(access, None, node, connector, Memlet(data=name, subset="0"))


@oprepo.replaces("dace.comm.PutmemSignal")  # type: ignore[untyped-decorator]
def _putmem_signal(
    pv: Any, sdfg: Any, state: Any, dest: Any, source: Any, signal: Any, value: Any, pe: Any
) -> None:
    node = _node(pv, state, "PutmemSignal")
    _read(state, node, "_source", source)
    _written(state, node, "_dest", dest)
    _written(state, node, "_signal", signal)
    _number(pv, state, node, "_value", value, dtypes.int64)
    _number(pv, state, node, "_pe", pe, dtypes.int32)


@oprepo.replaces("dace.comm.SignalWait")  # type: ignore[untyped-decorator]
def _signal_wait(pv: Any, sdfg: Any, state: Any, signal: Any, value: Any) -> None:
    node = _node(pv, state, "SignalWait")
    _read(state, node, "_signal", signal)
    _number(pv, state, node, "_value", value, dtypes.int64)


@oprepo.replaces("dace.comm.SignalOp")  # type: ignore[untyped-decorator]
def _signal_op(pv: Any, sdfg: Any, state: Any, signal: Any, value: Any, pe: Any) -> None:
    node = _node(pv, state, "SignalOp")
    _written(state, node, "_signal", signal)
    _number(pv, state, node, "_value", value, dtypes.int64)
    _number(pv, state, node, "_pe", pe, dtypes.int32)


@oprepo.replaces("dace.comm.Putmem")  # type: ignore[untyped-decorator]
@oprepo.replaces("dace.comm.Iput")  # type: ignore[untyped-decorator]
def _putmem(pv: Any, sdfg: Any, state: Any, dest: Any, source: Any, pe: Any) -> None:
    node = _node(pv, state, "Putmem")
    _read(state, node, "_source", source)
    _written(state, node, "_dest", dest)
    _number(pv, state, node, "_pe", pe, dtypes.int32)


@oprepo.replaces("dace.comm.P")  # type: ignore[untyped-decorator]
def _p(pv: Any, sdfg: Any, state: Any, dest: Any, value: Any, pe: Any) -> None:
    node = _node(pv, state, "P")
    name, _ = _part(sdfg, dest)
    _number(pv, state, node, "_value", value, sdfg.arrays[name].dtype)
    _written(state, node, "_dest", dest)
    _number(pv, state, node, "_pe", pe, dtypes.int32)


@oprepo.replaces("dace.comm.Getmem")  # type: ignore[untyped-decorator]
@oprepo.replaces("dace.comm.Iget")  # type: ignore[untyped-decorator]
def _getmem(pv: Any, sdfg: Any, state: Any, dest: Any, source: Any, pe: Any) -> None:
    node = _node(pv, state, "Getmem")
    _read(state, node, "_source", source)
    _written(state, node, "_dest", dest)
    _number(pv, state, node, "_pe", pe, dtypes.int32)


@oprepo.replaces("numpy.prod")  # type: ignore[untyped-decorator]
def _prod(pv: Any, sdfg: Any, state: Any, a: Any, axis: Any = None) -> Any:
    """Return the product of an array, which DaCe does not know."""
    from dace.frontend.python.replacements.reduction import reduce

    return reduce(pv, sdfg, state, "lambda x, y: x * y", a, axis=axis, identity=1)


@oprepo.replaces("dace.comm.Quiet")  # type: ignore[untyped-decorator]
def _quiet(pv: Any, sdfg: Any, state: Any) -> None:
    _node(pv, state, "Quiet")
