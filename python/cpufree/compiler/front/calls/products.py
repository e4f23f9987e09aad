"""Products of arrays whose terms are summed: np.dot, A @ B, np.einsum."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.calls.along import reduced_along
from cpufree.compiler.front.calls.arrays import reduced
from cpufree.compiler.front.calls.call import Call, beforehand, on_host
from cpufree.compiler.front.protocols import Evaluates
from cpufree.compiler.front.values import ArrayValue, Host, ScalarValue, Scope, Value

_LEFT, _RIGHT = {1: "k", 2: "ik"}, {1: "k", 2: "kj"}
"""Axes of the operands of A @ B, by how many there are; those of np.inner(A, B) end with k."""


def matmul(e: Evaluates, node: ast.AST, left: Value, right: Value) -> Value:
    """Return left @ right."""
    return _of_two(Call(e, node, Scope(), np.matmul, [left, right]))


def of_transposed(e: Evaluates, node: ast.BinOp, scope: Scope) -> Value:
    """Return left @ right, written with A.T, A.transpose() or np.transpose(A), or without."""
    parts = node.left, node.right
    inner = [_untransposed(part) for part in parts]
    found = e.in_order([one or part for one, part in zip(inner, parts, strict=True)], scope)
    turned = []
    for k, value in enumerate(found):
        is_array = isinstance(value, ArrayValue)
        turned.append(inner[k] is not None and is_array)
        if inner[k] is not None and not is_array:  # an array of the host, or an attribute T
            found[k] = e.eval(parts[k], scope)
    if not any(turned):
        return e.binary(node, ast.MatMult, *found)
    return _of_two(Call(e, node, scope, np.matmul, found), turned)


def _untransposed(node: ast.expr) -> ast.expr | None:
    """Return A of an expression that reads as a transposed array; None: it does not."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        return node.value
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    owner = node.func.value
    if node.func.attr != "transpose" or node.keywords:
        return None
    if isinstance(owner, ast.Name) and owner.id in ("np", "numpy"):
        return node.args[0] if len(node.args) == 1 else None
    return None if node.args else owner


def check_in_place(b: Builder, node: ast.AST, right: Value) -> None:
    """Refuse A @= right where NumPy does: a vector there makes an array of fewer dimensions."""
    operand = b.operand(node, right)
    if not (isinstance(operand, ArrayValue) and len(operand.shape) > 1):
        b.fail(node, "NumPy has no @= with a vector", "write y[...] = A @ x")


def _of_two(c: Call, turned: Sequence[bool] = (False, False)) -> Value:
    """np.dot, np.vdot, np.inner, np.matmul: products of vectors and of matrices.

    `turned`: the operands that are transposed.
    """
    if on_host(c):
        return beforehand(c)
    c.done(2)
    a, b = c.array(0), c.array(1)
    left, right = _LEFT.get(len(a.shape), ""), _RIGHT.get(len(b.shape), "")
    if c.function is np.vdot:
        left = right = "ijkl"[: len(a.shape)]
    elif c.function is np.inner:
        right = right[::-1]
    left, right = (t[::-1] if turn else t for t, turn in zip((left, right), turned, strict=True))
    counts = {*zip(left, a.shape, strict=False), *zip(right, b.shape, strict=False)}
    if not left or not right or len(counts) > len({*left, *right}):
        one, other = (x.shape[:: -1 if t else 1] for x, t in zip((a, b), turned, strict=True))
        c.fail(
            f"a product of arrays of shapes {one} and {other}",
            "A @ B takes vectors and matrices that fit; of fields write np.sum(a * b)",
        )
    output = "".join(x for x in "ij" if (x in left) != (x in right))
    return _contracted(c, [left, right], [a, b], output)


def einsum(c: Call) -> Value:
    """np.einsum of products of each point, some of whose axes are summed."""
    text = c.args[0].value if c.args and isinstance(c.args[0], Host) else None
    if not isinstance(text, str) or c.keywords or len(c.args) < 2:
        c.fail("np.einsum takes a text and arrays here", 'write np.einsum("kij,k->ij", g, w)')
    inputs, arrow, output = str(text).replace(" ", "").partition("->")
    operands = [c.array(k) for k in range(1, len(c.args))]
    if not arrow:
        _fail_order(c)
    return _contracted(c, inputs.split(","), operands, output)


def _fail_order(c: Call) -> None:
    c.fail(
        "this np.einsum is no sum of products of points",
        "each letter once in a term, all in one order, as in 'kij,k->ij'; else write it with "
        "np.sum",
    )


def _contracted(c: Call, terms: list[str], operands: list[ArrayValue], output: str) -> Value:
    """Return the sum of products over the axes that the result does not have; axes have letters."""
    letters = _letters([*terms, output])
    if letters is None or [len(t) for t in terms] != [len(o.shape) for o in operands]:
        _fail_order(c)
    assert letters is not None
    product: Any = None
    for term, operand in zip(terms, operands, strict=True):
        index: list[int | slice | None] = [slice(None) if x in term else None for x in letters]
        wide = values.sliced(operand, index)
        product = wide if product is None else c.e.builder.elementwise(
            c.node, "multiply", [product, wide]
        )  # fmt: skip
    assert isinstance(product, ArrayValue)
    kind = product.type
    if kind == "bool":
        c.fail("a product of bools", "write np.any(a & b), or convert with .astype")
    if not output:
        return ScalarValue(c.e.builder.cast(reduced(c, "sum", product).expr, kind), kind)
    axes = tuple(k for k, x in enumerate(letters) if x not in output)
    result = reduced_along(c, "sum", product, axes, False) if axes else product
    kept = c.e.builder.cast(result.expr, kind)
    return c.e.builder.materialise(c.node, "product", ArrayValue(kept, result.shape, kind))


def _letters(terms: list[str]) -> str | None:
    """Return all letters in an order that all terms keep; None: there is none."""
    if any(len(set(t)) < len(t) or not t.isalpha() for t in terms if t):
        return None
    left = list(dict.fromkeys("".join(terms[:-1])))
    if set(terms[-1]) - set(left):
        return None
    found = ""
    while left:
        ready = [x for x in left if not any(_before(t, y, x) for t in terms for y in left)]
        if not ready:
            return None
        found += ready[0]
        left.remove(ready[0])
    return found


def _before(term: str, first: str, then: str) -> bool:
    return first in term and then in term and term.index(first) < term.index(then)


FUNCTIONS: dict[Any, Any] = {
    **dict.fromkeys((np.dot, np.vdot, np.inner, np.matmul), _of_two), np.einsum: einsum
}  # fmt: skip
