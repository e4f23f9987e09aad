"""Programs of one expression: every operator and function, of operands of every type and source."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from any_program import Case, module_text

from cpufree.compiler.operations import UFUNCS

_ARRAYS = {"mb": "bool", "i4": "int32", "i8": "int64", "f4": "float32", "f8": "float64"}
_USUAL = {
    "bool": ("[True, False, True, True]", "[False, False, True, False]"),
    "int32": ("[1, 2, 3, 4]", "[7, -3, 2, 5]", "[0, 1, -1, 2]"),
    "int64": ("[4, 3, 2, 1]", "[9, -5, 6, 1]", "[0, 2, -2, 5]"),
    "float32": ("[0.5, 1.5, -2.0, 3.25]", "[1.0, 0.1, 2.7, 8.0]"),
    "float64": ("[0.25, -1.5, 2.0, 4.75]", "[1.0, 0.3, 7.1, -0.7]", "[0.0, 0.5, 1.0, 0.9]"),
}
_SPECIAL = {
    "bool": _USUAL["bool"],
    "int32": ("[2**31 - 1, -2**31, 0, -1]", "[0, 0, 1, 46341]", "[-1, 65536, 7, -7]"),
    "int64": ("[2**63 - 1, -2**63, 0, -1]", "[2**53 + 1, 2**31, -2**31 - 1, 0]", "[0, 0, 3, -3]"),
    "float32": ("[0.0, -0.0, np.inf, -np.inf]", "[np.nan, 1e-45, 3.4e38, -1.0]",
                "[-0.5, 0.5, -0.0, np.nan]", "[3e9, -3e9, 0.1, 2.5]"),
    "float64": ("[0.0, -0.0, np.inf, -np.inf]", "[np.nan, 5e-324, 1.7e308, -1.0]",
                "[-0.5, 0.5, -0.0, np.nan]", "[3e10, -3e10, 1e19, 2.5]",
                "[-0.0, 0.0, -1e-310, 1.5]"),
}  # fmt: skip
# Arguments and globals that are numbers, by the ends of their names.
_NUMBERS = {
    "b": ("True", "False"), "i": ("2", "-1", "0", "3"), "f": ("0.5", "2.0", "-1.5", "0.0"),
    "nb": ("np.bool_(True)", "np.bool_(False)"), "n4": ("np.int32(2)", "np.int32(-3)"),
    "n8": ("np.int64(3)", "np.int64(-2)"), "s4": ("np.float32(0.5)", "np.float32(1.7)"),
    "s8": ("np.float64(0.25)", "np.float64(2.0)"),
}  # fmt: skip
_ODD_NUMBERS = {
    "b": ("True",), "i": ("0", "-1", "2**31", "-2**31", "2**53 + 1", "2**63 - 1", "300"),
    "f": ("-0.0", "np.inf", "np.nan", "5e-324", "1.7e308", "-np.inf", "-0.5"),
    "nb": ("np.bool_(False)",), "n4": ("np.int32(2**31 - 1)", "np.int32(-2**31)", "np.int32(0)"),
    "n8": ("np.int64(-2**63)", "np.int64(2**53 + 1)", "np.int64(0)"),
    "s4": ("np.float32(-0.0)", "np.float32('nan')", "np.float32('inf')", "np.float32(1e-45)"),
    "s8": ("np.float64('nan')", "np.float64(-0.0)", "np.float64('-inf')", "np.float64(1.7e308)"),
}  # fmt: skip
_LITERALS = ("True", "2", "-1", "3", "0.5", "-2.5", "2.0", "1e-3", "0", "0.0")
_OF_RUN = ("np.max({a})", "{a}[0]", "{a}[-1]", "np.sum({a})", "np.min({a})", "np.mean({a})",
           "np.any({a})",
           "{a}.max()", "np.all({a} > 0)", "{a}[1] * 2", "int(np.max(i8))", "float({a}[0])",
           "bool({a}[1])")  # fmt: skip
_JOINED = ("k = 2\nif {a}[0] > 0:\n    k = 2.5",
           "k = 0\nfor t in range(2):\n    k = k + np.max({a})",
           "k = 4\nif np.max({a}) > 1e9:\n    k = np.sum({a})",
           "k = 1\nfor t in range(3):\n    k = k * 2",
           "k = 1.5\nif np.any({a}):\n    k = np.float64(2.5)",
           "k = True\nif {a}[1] > 0:\n    k = 3",
           "k = np.float32(2)\nif {a}[0] > 0:\n    k = 0.5",
           "k = 2\nif np.max({a}) > 0:\n    k = np.int32(3)",
           "k = 4\nfor t in range(0):\n    k = np.sum({a})", "k = 0.5\nk += {a}[0]",
           "k = 3\nk *= {a}[0]")  # fmt: skip
_BINARY = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^")
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_DTYPES = (
    "np.float32",
    "np.float64",
    "np.int32",
    "np.int64",
    "np.bool_",
    "bool",
    "int",
    "float",
    "'float32'",
)
_FORMS = {
    "function": ("np.{f1}({x})", "np.{f2}({x}, {x})", "np.{f2}({x}, {x})"),
    "operator": ("{x} {o} {x}", "{x} {o} {x}", "{x} {o} {x}", "-{x}", "~{x}", "+{x}", "abs({x})"),
    "comparison": ("{x} {c} {x}", "{n} {c} {n} {c} {n}", "not {n}", "not ({n} {c} {n})"),
    "joined conditions": ("{n} and {n}", "{n} or {n}", "({n} {c} {n}) and {n}", "{n} or {x}",
                          "({n} or 1.0) * {x}",
                          "{n} if {n} {c} {n} else {n}", "{x} if {n} else {x}"),
    "minmax": ("min({n}, {n})", "max({n}, {n})", "min({n}, {n}) * {x}", "max({n}, {n}, {n})"),
    "cast": ("{a}.astype({t})", "np.float32({x})", "np.int32({x})", "np.int64({x})",
             "np.float64({x})", "int({n})",
             "float({n})", "bool({n})", "{a}.astype({t}) * {x}", "{a}.astype({t}).astype({t})",
             "np.bool_({x})",
             "{n} * {a}.astype({t})", "{a}[0].item()", "1.0 / {a}.astype(np.int64)",
             "float({n}) * {x}"),
    "reduction": ("np.{r}({x})", "{a}.{r}()", "np.{r}({n})", "np.{r}({a} {c} {n})",
                  "np.{r}({a}) {o} {n}", "np.linalg.norm({a})",
                  "np.sum({a}, dtype={t})", "np.max({a}, axis=0)", "np.sum({a}, keepdims=False)"),
    "where": ("np.where({x} {c} {x}, {x}, {x})", "np.where({x}, {x}, {x})",
              "np.where({n}, {n}, {n})"),
    "clip": ("np.clip({x}, {n}, {n})", "np.clip({a}, {n}, None)", "np.clip({a}, {a}, {a})",
             "np.clip({n}, {n}, {n})"),
    "power": ("{x} ** {n}", "{a} ** 2", "{a} ** 0.5", "{a} ** -1", "{n} ** {n}", "{a} ** 2.0",
              "{a} ** np.float64(2)",
              "{a} ** np.float32(0.5)", "{a} ** -1.0", "{a} ** 3", "{a} ** True",
              "np.power({x}, {x})", "{a} ** 0"),
    "math": ("math.{m}({n})", "math.{m}({n}) * {x}"),
    "new": ("np.full(4, {n})", "np.full_like({a}, {n})", "np.zeros(4, {t}) + {x}",
            "np.ones_like({a}, dtype={t}) * {x}",
            "np.zeros_like({a}) {o} {x}", "np.full(4, {n}, {t}) {o} {x}",
            "np.empty_like({a}).dtype", "{a} * np.ones(4, {a}.dtype)"),
    "in place": ("{a} {o}= {x}", "{a}[1:] {o}= {n}", "y = {a}.copy()\ny {o}= {x}\nreturn y",
                 "y = {n}\ny {o}= {n}\nreturn y",
                 "{a}[0] {o}= {n}"),
    "store": ("{a}[:] = {x}", "{a}[0] = {n}", "{a}[1:] = {n}", "{a}[...] = {x}", "{a}.fill({n})",
              "np.copyto({a}, {x})"),
}  # fmt: skip
_REDUCTIONS = ("sum", "max", "min", "mean", "any", "all")
_MATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "fabs", "tanh", "floor", "ceil")


class _Writer:
    def __init__(self, r: random.Random, special: bool) -> None:
        self.r = r
        self.arrays, self.numbers = (_SPECIAL, _ODD_NUMBERS) if special else (_USUAL, _NUMBERS)
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.joined = False

    def array(self) -> str:
        return self.r.choice(list(_ARRAYS))

    def number(self) -> str:
        """Return a number of any type, from anywhere."""
        where = self.r.choice(
            ("literal", "name", "argument", "global", "run", "run", "joined", "np")
        )
        self.labels.append(f"number: {where}")
        kind = self.r.choice(list(self.numbers))
        if where == "literal":
            return self.r.choice(_LITERALS)
        if where == "argument":
            return f"a_{kind}"
        if where == "global":
            return f"G_{kind}"
        if where == "run":
            return self.r.choice(_OF_RUN).format(a=self.array())
        if where == "joined" and not self.joined:
            self.joined = True
            self.lines += self.r.choice(_JOINED).format(a=self.array()).splitlines()
            return "k"
        value = self.r.choice(self.numbers[kind])
        if where == "name":
            name = f"x{len(self.lines)}"
            self.lines.append(f"{name} = {value}")
            return name
        return f"({value})"

    def operand(self, depth: int = 1) -> str:
        if depth and self.r.random() < 0.12:
            inner = self.r.choice(("operator", "function", "cast"))
            return f"({self.filled(self.r.choice(_FORMS[inner]), 0)})"
        return self.array() if self.r.random() < 0.6 else self.number()

    def filled(self, form: str, depth: int = 1) -> str:
        def fill(hole: re.Match[str]) -> str:
            made: dict[str, Callable[[], str]] = {
                "x": lambda: self.operand(depth), "n": self.number, "a": self.array,
                "o": lambda: self.r.choice(_BINARY), "c": lambda: self.r.choice(_COMPARE),
                "t": lambda: self.r.choice(_DTYPES), "r": lambda: self.r.choice(_REDUCTIONS),
                "m": lambda: self.r.choice(_MATH),
                "f1": lambda: self.r.choice([k for k, f in UFUNCS.items() if f.nin == 1]),
                "f2": lambda: self.r.choice([k for k, f in UFUNCS.items() if f.nin == 2]),
            }  # fmt: skip
            return made[hole.group(1)]()

        return re.sub(r"\{(\w+)\}", fill, form)


def _write(feature: str, seed: int, special: bool) -> Case:
    r = random.Random(f"{feature}/{seed}")
    w = _Writer(r, special)
    kind = r.choice(list(_FORMS))
    w.labels.append(kind)
    made = w.filled(r.choice(_FORMS[kind])).splitlines()
    if kind not in ("in place", "store"):
        made = [f"return {made[0]}"]
    body = [*w.lines, *made]
    text = "\n".join(body)
    names = [x for x in _ARRAYS if re.search(rf"\b{x}\b", text)] or ["f8"]
    values = [f"np.array({r.choice(w.arrays[_ARRAYS[x]])}, np.{_ARRAYS[x]})" for x in names]
    for x, choices in w.numbers.items():
        if re.search(rf"\ba_{x}\b", text):
            names.append(f"a_{x}")
            values.append(r.choice(choices))
    before = "\n".join(
        f"G_{x} = {r.choice(choices)}"
        for x, choices in w.numbers.items()
        if re.search(rf"\bG_{x}\b", text)
    )
    if body[-1].startswith("np.") or "fill" in body[-1] or "=" in body[-1].split("return")[0]:
        body.append(f"return {names[0]}")
    made_text = module_text(body, ", ".join(values), ", ".join(names), before)
    return Case(feature, seed, made_text, tuple(dict.fromkeys(w.labels)))


def write_types(seed: int) -> Case:
    """Return a program of one expression, of usual values of all types."""
    return _write("types", seed, False)


def write_special(seed: int) -> Case:
    """Return a program of one expression, of special values: zeros, infinities, NaN, extremes."""
    return _write("special", seed, True)
