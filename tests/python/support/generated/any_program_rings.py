"""Programs with periodic boundaries: rows that are neighbours around the ring, in several turns."""

from __future__ import annotations

import random
import re

from any_program import Case, module_text

_ROWS = 12


class _Writer:
    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.names = ["u", "v", "w"]
        self.labels: list[str] = []
        self.columns = r.choice((0, 0, 1, 3))

    def name(self) -> str:
        return self.r.choice(self.names)

    def whole(self) -> str:
        """Return an array of all rows."""
        a, b = self.name(), self.name()
        kind = self.r.random()
        shift = self.r.choice(("1", "-1", "2", "-2", "3"))
        if kind < 0.45:
            self.labels.append("roll")
            return f"np.roll({a}, {shift}, 0)"
        if kind < 0.5:
            return f"np.roll({a} + {b}, {shift}, 0)"
        if kind < 0.55 and self.columns > 1:
            return f"np.roll({a}, ({shift}, 1), axis=(0, 1))"
        if kind < 0.6:
            return f"np.roll(np.roll({a}, {shift}, 0), {self.r.choice((1, -1))}, 0)"
        return self.r.choice((a, f"0.5 * {a}", f"({a} - {b})", f"np.maximum({a}, {b})"))

    def rows(self) -> list[str]:
        """Return statements that write the inner rows, and then those at the ends."""
        self.labels.append("rows")
        a, b = self.name(), self.name()
        reach = self.r.choice((1, 1, 1, 2))
        lower, upper = self.r.choice(((0, reach), (reach, 0), (reach, reach)))
        stop = f"-{upper}" if upper else ""
        below = f"{b}[:{-lower - upper or ''}]" if lower else f"{b}[{upper}:]"
        above = f"{b}[{lower + upper}:]" if upper else f"{b}[:-{lower}]"
        here = f"{a}[{lower or ''}:{stop}]"
        value = self.r.choice(
            (f"{above} - {below}", f"0.5 * ({above} + {below})", f"{below}", f"{above} + 0.25")
        )
        lines = [f"{here} {self.r.choice(('=', '=', '+='))} {value}"]
        for k in range(lower):
            lines.append(f"{a}[{k}] = {self.end(b, k, reach)}")
        for k in range(upper):
            lines.append(f"{a}[-{k + 1}] = {self.end(b, -k - 1, reach)}")
        self.r.shuffle(lines)
        return lines

    def end(self, b: str, row: int, reach: int) -> str:
        """Return a value for a row at an end, from rows at the other end and nearby."""
        if row >= 0:
            far, near = f"{b}[{row - reach}]", f"{b}[{row + reach}]"
        else:
            far, near = f"{b}[{row + reach}]", f"{b}[{row - reach}]"
        return self.r.choice(
            (far, f"{near} - {far}", f"0.5 * ({near} + {far})", f"{b}[{row}] - {far}")
        )

    def statement(self) -> list[str]:
        kind = self.r.random()
        if kind < 0.3:
            return self.rows()
        a, b = self.name(), self.name()
        if kind < 0.42:
            self.labels.append("ghost rows")
            return self.r.choice(
                ([f"{a}[0] = {a}[-2]", f"{a}[-1] = {a}[1]"], [f"{a}[0], {a}[-1] = {a}[-2], {a}[1]"],
                 [f"{a}[:2] = {a}[-4:-2]", f"{a}[-2:] = {a}[2:4]"], [f"{a}[0] = {b}[-1]"],
                 [f"{a}[-1] = {b}[0]"], [f"{a}[0] = {a}[-1] = 0.5 * ({a}[0] + {a}[-1])"])
            )  # fmt: skip
        if kind < 0.55:
            self.labels.append("own array")
            own = self.r.choice(("p", "q"))
            lines = [f"{own} = {self.whole()} + {self.whole()}"]
            if own not in self.names:
                self.names.append(own)
            return lines
        if kind < 0.62:
            self.labels.append("swap")
            return [self.r.choice(("u, v = v, u", "u, v, w = w, u, v", "v, w = w, v"))]
        if kind < 0.68:
            self.labels.append("condition")
            return [
                f"if {self.r.choice((f'np.max({a}) > 2.0', 't % 2 == 0'))}:",
                f"    {b} += np.roll({a}, 1, 0)",
            ]
        if kind < 0.73:
            return [f"s = np.max(np.abs({a}))", f"{b} -= 0.125 * s"]
        sign = self.r.choice(("+=", "-=", "[:] =", "+="))
        return [
            f"{a} {sign} {self.whole()}"
            if sign != "[:] ="
            else f"{a}[:] = {self.whole()} + {self.whole()}"
        ]

    def scheme(self) -> list[str]:
        """Return a step of a method: rates of own arrays, their differences, and an update."""
        self.labels.append("scheme")
        a, f = self.r.sample(("u", "v", "w"), 2)
        lines = [self.r.choice((f"p = 0.5 * {a}", f"p = {a} + 1.0", f"p = {a} * {a}"))]
        source = "p"
        if self.r.random() < 0.4:
            lines.append(
                self.r.choice((f"q = p + {f}", "q = 0.25 * np.roll(p, 1, 0)", "q = p - 1.0"))
            )
            source = "q"
        self.names = [source]
        rows = self.rows()
        while not re.search(r"^\w\[.*:", "\n".join(rows)):
            rows = self.rows()
        lines += [re.sub(rf"^{source}\[", f"{f}[", row) for row in rows]
        self.names = ["u", "v", "w"]
        lines.append(
            self.r.choice((f"{a} += {f}", f"{a}[:] = np.roll(p, -1, 0) + {f}", f"{a} -= 0.5 * {f}"))
        )
        return lines


def write_rings(seed: int) -> Case:
    """Return a program with periodic boundaries."""
    r = random.Random(f"rings/{seed}")
    w = _Writer(r)
    before = [f"p = 1.0 * {w.name()}"] if r.random() < 0.3 else []
    if before:
        w.names.append("p")
    body = w.scheme() if r.random() < 0.5 else []
    count = r.choice((0, 0, 1, 2)) if body else r.randint(2, 5)
    body += [line for _ in range(count) for line in w.statement()]
    body += [f"{x} *= 0.25" for x in ("u", "v", "w") if r.random() < 0.6]
    rows = r.choice((_ROWS, 6, 8))
    shape = f"({rows}, {w.columns})" if w.columns else f"({rows},)"
    lines = [*before, "for t in range(n):", *(f"    {line}" for line in body)]
    arguments = ", ".join(
        f"np.random.default_rng({seed + k}).integers(-8, 9, {shape}) * 0.5" for k in range(3)
    )
    text = module_text([*lines, "return u, v"], f"{arguments}, {r.randint(1, 5)}", "u, v, w, n")
    return Case("rings", seed, text, tuple(dict.fromkeys(w.labels)))
