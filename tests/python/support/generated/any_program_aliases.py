"""Programs in which an array has several names: in tuples, views, programs, across swaps."""

from __future__ import annotations

import random

from any_program import Case, module_text

_BEFORE = """G = np.arange(6.0)


@cpufree.program
def first(a, b):
    a += 1.0
    return a


@cpufree.program
def second(a, b):
    b[0] += 1.0
    return b


@cpufree.program
def fresh(a, b):
    a[0] = 2.0
    return a + b


@cpufree.program
def swapped(a, b):
    return b, a


@cpufree.program
def halves(a, b):
    return a[1:], b[:-1]
"""
_BINDS = {
    "name": ("{a} = {b}", "{a} = {b}", "{a} = {b}"),
    "own": ("{a} = {b} + 1.0", "{a} = {b}.copy()", "{a} = 2.0 * {b}", "{a} = {b} + {c}"),
    "swap": ("{a}, {b} = {b}, {a}", "{a}, {b}, {c} = {c}, {a}, {b}", "{a}, {b} = {b}, {b} + 1.0"),
    "chain": ("{a} = {b} = {c}", "{a} = {b} = {c} + 1.0"),
    "tuple": ("s = ({a}, {b})\ns[0][1] = 8.0", "s = ({a}, {b})\n{a}, {b} = s[1], s[0]",
              "s = [{a}, {b}]\n{c} = s[1]", "s = (({a}, 1), {b})\n{c} = s[0][0]"),
    "held": ("s = ({a}, {b})\n{a}, {b} = {b}, {a}\ns[0][2] = 4.0",
             "s = {a}\n{a} = {a} + 1.0\ns[1] = 3.0\n{b} += s"),
    "loop of arrays": ("for q in ({a}, {b}):\n    q += 1.0",
                       "for q in ({a}, {b}, {a}):\n    q[0] = 2.0 * q[1]"),
    "helper": ("{a} = first({b}, {c})", "{a} = second({b}, {c})", "{a} = fresh({b}, {c})",
               "{a}, {b} = swapped({a}, {c})", "first({a}, {b})", "{a} = first({b}, {b})"),
    "view": ("p = {a}[1:]\np += 1.0", "p = {a}[::2]\n{a}[0] = 6.0\n{b}[0] = p[0]",
             "p = {a}[:]\np[0] = 3.0",
             "p = {a}[1:]\n{a} = {b}\np[0] = 2.0", "p = {a}[1:][1:]\np *= 2.0",
             "p, q = halves({a}, {b})\np += 1.0",
             "{a} = {b}[:]", "{a} = {b}[...]"),
    "out": ("{a} = np.add({b}, 1.0, out={b})", "{a} = np.multiply({b}, {c}, out={b})",
            "np.copyto({a}, {b})"),
}  # fmt: skip
_WRITES = ("{a}[0] = 3.0", "{a} += 1.0", "{a} *= 0.5", "{a}[1:] += {b}[:-1]", "{a}[:] = {b}",
           "{a} -= {b}",
           "{a}[-1] = np.max({b})", "{a}[...] = {b} + {c}", "{a}.fill(2.0)",
           "{a}[1:-1] = 0.5 * {b}[2:]")  # fmt: skip
_HEADS = ("for t in range(n):", "for t in range(n):", "if n > 1:", "if u[0] > 0.25:",
          "for t in (0, 1):",
          "if t0 % 2 == 0:", "while k < n:", "for t in range(3):")  # fmt: skip


class _Writer:
    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.names = ["u", "v", "w"]
        self.labels: list[str] = []

    def filled(self, line: str) -> list[str]:
        """Return lines whose holes have names of arrays; those that they bind are known after."""
        a, b, c = (self.r.choice(self.names) for _ in range(3))
        if "{a}, {b}" in line and a == b:
            b = next(x for x in self.names if x != a)
        if line.startswith("{a} =") and self.r.random() < 0.5:
            a = self.r.choice(("a", "b", "best"))
        made = line.format(a=a, b=b, c=c).splitlines()
        if a not in self.names:
            self.names.append(a)
        return made

    def statement(self) -> list[str]:
        if self.r.random() < 0.45:
            return self.filled(self.r.choice(_WRITES))
        kind = self.r.choice(list(_BINDS))
        self.labels.append(kind)
        return self.filled(self.r.choice(_BINDS[kind]))

    def region(self) -> list[str]:
        head = self.r.choice(_HEADS)
        self.labels.append(head.split()[0])
        known = list(self.names)
        inner = [line for _ in range(self.r.randint(1, 3)) for line in self.statement()]
        if head.startswith("for t in range") and self.r.random() < 0.2:
            leave = self.r.choice(("break", "continue"))
            self.labels.append(leave)
            at = self.r.choice((0, len(inner)))
            inner[at:at] = [f"if np.max({self.r.choice(known)}) > 9.0:", f"    {leave}"]
        if head.startswith("while"):
            inner.insert(0, "k += 1")
        if head.startswith(("if", "for t in range(n)", "while")) and self.r.random() < 0.8:
            self.names = known  # what is bound in the region may have no value
        lines = [head, *(f"    {line}" for line in inner)]
        if head.startswith("if") and self.r.random() < 0.4:
            other = [line for line in self.statement()]
            self.names = known
            lines += ["else:", *(f"    {line}" for line in other)]
        return ["k = 0", *lines] if head.startswith("while") else lines


def write_aliases(seed: int) -> Case:
    """Return a program that gives arrays several names and writes through them."""
    r = random.Random(f"aliases/{seed}")
    w = _Writer(r)
    lines: list[str] = []
    for _ in range(r.randint(2, 5)):
        lines += w.region() if r.random() < 0.4 else w.statement()
    shown = [r.choice(w.names) for _ in range(r.randint(0, 3))]
    if shown:
        lines.append(f"return {', '.join(shown)}")
    n = r.choice((0, 1, 2, 3, 4))
    arguments = (
        f"np.arange(6.0), np.full(6, 0.5), np.arange(6.0)[::-1].copy(), {n}, {r.randint(0, 1)}"
    )
    text = module_text(lines, arguments, "u, v, w, n, t0", _BEFORE)
    return Case("aliases", seed, text, tuple(dict.fromkeys(w.labels)))
