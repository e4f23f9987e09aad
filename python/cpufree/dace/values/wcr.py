"""Memlets: what a copy goes between, how values are joined with what is there, parts of arrays."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, affine, plus
from cpufree.dace.values.refusal import Place


@dataclass(frozen=True)
class Part:
    """Several elements of an array, which go into a tasklet together."""

    name: str
    subset: Any
    type: str = ""

    def at(self, index: tuple[Affine, ...], body: Any) -> tuple[str, tuple[Affine, ...]]:
        """Return the array, and the index in it of an element of the part."""
        left = list(index)
        found: list[Affine] = []
        for begin, end, step in self.subset:
            first = affine(begin, body.names)
            if begin != end and left:
                along = left.pop(0)
                by = affine(step, body.names)
                if by.factors or by.constant != 1:
                    body.place.fail("a part with steps goes into a tasklet", "read single elements")
                first = plus(first, along)
            elif left and len(left) == len(self.subset) - len(found):
                left.pop(0)
            found.append(first)
        return self.name, tuple(found)


def copied(child: Any) -> tuple[Any, Any]:
    """Return what a copy reads, and where it writes (None: all of its target)."""
    memlet = child.memlet
    if memlet._is_data_src is False:  # of copies inside one array the first one is the target
        return memlet.other_subset, memlet.subset
    return memlet.subset, memlet.other_subset


def joined(memlet: Any, value: Any, place: Place) -> tuple[Any, str]:
    """Return what a memlet joins with what is there, and how; "": it replaces it."""
    if memlet.wcr is None:
        return value, ""
    tree = ast.parse(str(memlet.wcr).strip(), mode="eval").body
    names = [a.arg for a in tree.args.args] if isinstance(tree, ast.Lambda) else []
    if len(names) == 2 and ast.unparse(tree.body) == " - ".join(names):  # type: ignore[attr-defined]
        return operators.apply("negative", [value]), "sum"
    reduction, logical = reduction_named(memlet.wcr, place)
    return operators.cast(value, "bool") if logical else value, reduction


def reduction_named(wcr: Any, place: Place) -> tuple[str, bool]:
    """Return the name of a function that joins values, and whether it takes them as truths."""
    tree = ast.parse(str(wcr).strip(), mode="eval").body
    if isinstance(tree, ast.Lambda) and len(tree.args.args) == 2:
        names = sorted(a.arg for a in tree.args.args)
        body = tree.body
        operands: list[ast.expr] = []
        kind = ""
        if isinstance(body, ast.BinOp):
            operands, kind = [body.left, body.right], type(body.op).__name__
        elif isinstance(body, ast.BoolOp):
            operands, kind = body.values, type(body.op).__name__
        elif isinstance(body, ast.Call):
            operands, kind = body.args, ast.unparse(body.func).rpartition(".")[2]
        if sorted(ast.unparse(o) for o in operands) == names and kind in _FORMS:
            return _FORMS[kind]
    place.fail(f"values are joined by {wcr}", "use sum, product, max, min, any or all")


_FORMS = {
    "Add": ("sum", False), "Mult": ("prod", False), "max": ("max", False), "min": ("min", False),
    "Or": ("max", True), "And": ("min", True), "maximum": ("max", False),
    "minimum": ("min", False), "logical_or": ("max", True), "logical_and": ("min", True),
}  # fmt: skip
