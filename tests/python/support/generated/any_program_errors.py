"""Programs that raise in Python for some of their values, and for others do not."""

from __future__ import annotations

import random
import re

from any_program import Case, module_text

# Holes: n a whole number, f a float, d a dtype, m and q numbers of turns, e an exponent.
_STATEMENTS = {
    "store whole": ("k[0] = {n}", "k[1:] = {n}", "j[0] = {n}", "k[:] = {n}", "k.fill({n})",
                    "k[2] += {n}"),
    "store float": ("k[0] = {f}", "j[1] = {f}", "k[:] = {f}", "k[1:] = u[1:]",
                    "k[0] = u[0] / v[0]", "k[0] = np.max(u) * {f}"),
    "operand": ("r = k + {n}", "r = k * {n}", "r = j - {n}", "r = k == {n}",
                "r = np.maximum(k, {n})", "r = k < {n}",
                "r = np.where(u > 0, k, {n})", "r = np.clip(k, 0, {n})", "r = k & {n}"),
    "in place": ("k += {f}", "k /= 2", "k *= u", "k //= {n}", "k **= {n}", "j -= k", "k %= {n}",
                 "m += m", "m -= m", "k += j",
                 "u += {n}", "k[1:] *= {f}"),
    "power": ("r = k ** {n}", "r = k ** -1", "r = 2 ** {e}", "r = {f} ** {f}", "r = {n} ** {e}",
              "r = k ** j", "r = s ** 0.5",
              "r = s ** {n}", "r = {f} ** n", "r = n ** {e}"),
    "division": ("r = n / {n}", "r = n // {n}", "r = n % {n}", "r = c / {f}", "r = c // {f}",
                 "r = c % {f}", "r = s / {n}",
                 "r = 1 / n", "r = 1.0 / c", "r = k // {n}", "r = k / {n}",
                 "r = np.max(k) // {n}", "r = u / {n}"),
    "math": ("r = math.sqrt({f})", "r = math.log({f})", "r = math.exp({f})", "r = math.sqrt(s)",
             "r = math.log(np.min(u))",
             "r = math.exp(s * {f})", "r = math.cosh(s)", "r = math.tan({f})",
             "r = math.sqrt(u[0] - {f})", "r = math.sin({f})",
             "r = np.sqrt({f})", "r = np.log(s)", "r = math.sqrt(u)", "r = math.pow(s, 0.5)"),
    "overflow": ("r = 1\nfor t in range({n}):\n    r = r * 8",
                 "r = n\nfor t in range({q}):\n    r = r * r",
                 "r = 2.0\nfor t in range({m}):\n    r = r ** 2",
                 "r = 1\nfor t in range({m}):\n    r = r * 8\nk[0] = r",
                 "r = 10.0 ** {n}", "r = float(n) ** {n}",
                 "r = c\nfor t in range({m}):\n    r = r * r",
                 "r = 1\nfor t in range({m}):\n    r *= 3\nr = k * r"),
    "conversion": ("r = int({f})", "r = int(c)", "r = int(s)", "r = float(u)", "r = int(u[0])",
                   "r = bool(u)", "r = float(u[0])",
                   "r = np.int32({n})", "r = np.int64({f})", "r = np.float32({f})",
                   "r = np.int32(n)", "r = np.int64(s)"),
    "index": ("r = u[{n}]", "u[{n}] = 1.0", "r = u[{n}:]", "r = u[n]", "r = u[0, 0]",
              "r = u[{f}]", "u[n] += 1.0", "r = u[c]",
              "r = u[:{n}] + 1.0", "r = (1, 2, 3)[{n}]", "r = (1, 2, 3)[n]", "r = G[{n}]",
              "r = G[n]"),
    "shape": ("r = u[1:] + v", "u[:] = v[1:]", "u += w", "r = np.where(u > 0, w, v)",
              "u[1:3] = v[:3]", "r = u[:1] + v", "u[:1] = v",
              "r = w + u", "np.copyto(u, w)", "np.add(u, v[1:], out=u)", "r = u[:, None] + v",
              "r = np.add(u, v, out=u[1:])"),
    "condition": ("if u:\n    v += 1.0", "r = u > 0 and v > 0", "r = not u", "r = 0 < u < 1",
                  "while u[:1] < 0:\n    u += 1.0",
                  "r = u if v else k", "r = min(u, v)", "if u[:1] > 0:\n    v += 1.0",
                  "if {f}:\n    v += 1.0"),
    "unpacking": ("a, b = u[0], u[1], u[2]", "a, b = (1, 2, 3)", "a, b = {n}, {n}",
                  "(a, b), d = (1, 2), 3", "a, b = 1", "a, b = u",
                  "for a, b in ((1, 2), (3, 4)):\n    u += a", "for a, b in (1, 2):\n    u += a"),
    "types": ("r = u & v", "r = ~u", "r = m - m", "r = -m", "r = u << 1", "r = u @ v",
              "r = k ^ j", "r = u | 1", "r = ~k", "r = m & k",
              "r = m ^ m", "r = 'a' + u", "r = u + None", "r = u + (1, 2)", "r = np.invert(u)",
              "r = c & 1"),
    "creation": ("r = np.zeros({n})", "r = np.zeros((2, {n}))", "r = np.full(3, {f}, np.int32)",
                 "r = np.ones({f})",
                 "r = np.zeros(3, 'float65')", "r = u.astype('float65')", "r = u.astype({d})",
                 "r = np.zeros_like(u, dtype={d})",
                 "r = np.zeros(n)", "r = np.full(3, {n}, {d})", "r = np.ones(c)"),
    "loop": ("for t in range({f}):\n    u += 1.0", "for t in range(0, 5, 0):\n    u += 1.0",
             "for t in range(c):\n    u += 1.0",
             "for t in range(n, {n}):\n    u += 1.0", "for t in {n}:\n    u += 1.0",
             "for t in u:\n    v += t", "for t in range(5, 0, -{m}):\n    u += t",
             "for t in range({n}):\n    pass\nr = t"),
    "roll": ("r = np.roll(u, {n})", "r = np.roll(u, 1, axis={n})",
             "r = np.roll(u, (1, 1), axis=(0, 1))", "r = np.roll(u, {f})", "r = np.roll(w, 1)"),
    "out": ("np.add(u, v, out=k)", "np.add(k, j, out=u)", "np.multiply(u, 2.0, out=m)",
            "np.greater(u, v, out=m)", "np.copyto(k, u)",
            "np.copyto(u, k)", "np.add(u, v, u, v)", "np.add(u)", "np.sqrt(u, out=c)"),
    "no value": ("if n > 2:\n    r = 1.0\nu += r", "for t in range({n}):\n    r = t\nu += r",
                 "u += missing", "del c\nu += c", "r += 1"),
}  # fmt: skip
_WHOLE = ("0", "1", "2", "-1", "3", "7", "-7", "100", "2**31", "2**31 - 1", "-2**31",
          "-2**31 - 1", "2**63", "2**63 - 1", "10**20", "300", "12", "25")  # fmt: skip
_FLOATS = ("0.0", "1.5", "-0.5", "2.5", "1e10", "1e300", "np.nan", "np.inf", "-np.inf", "-1.0",
           "710.0", "0.5", "3.0")  # fmt: skip
_TYPES = ("np.int32", "np.float32", "np.int16", "np.complex128", "'U3'", "object", "np.uint8",
          "bool", "None")  # fmt: skip


def write_errors(seed: int) -> Case:
    """Return a program that may raise, after it has written something."""
    r = random.Random(f"errors/{seed}")
    kind = r.choice(list(_STATEMENTS))
    holes = {"n": _WHOLE, "f": _FLOATS, "d": _TYPES, "m": ("1", "2", "5", "12", "25"),
             "e": ("0", "1", "2", "-1", "-3", "3", "40", "70"), "q": ("1", "2", "5",
                   "7")}  # fmt: skip
    labels = [kind]

    def fill(hole: re.Match[str]) -> str:
        value = r.choice(holes[hole.group(1)])
        if hole.group(1) in "nf" and r.random() < 0.25:
            return f"({value})"
        return f"({value})" if value.startswith("-") else value

    made = re.sub(r"\{(\w+)\}", fill, r.choice(_STATEMENTS[kind])).splitlines()
    has_result = any(re.search(r"\br\b", line) for line in made)
    lines = ["s = np.max(u) - 1.0", "u[0] += 1.0"]
    place = r.choice(("plain", "plain", "late", "branch", "not reached"))
    labels.append(place)
    if place == "plain":
        lines += made
    elif place == "late":
        lines += ["r = 0.0", "for turn in range(4):", "    u[1] += 1.0", "    if turn == 3:"]
        lines += [f"        {line}" for line in made]
    elif place == "branch":
        lines += ["r = 0.0", "if u[1] > 0.0:", *(f"    {line}" for line in made)]
    else:
        lines += ["r = 0.0", "if u[1] > 99.0:", *(f"    {line}" for line in made)]
    if has_result:
        lines.append("return r")
    u = r.choice(("[0.0, 1.0, 2.0, 3.0]", "[-1.0, 0.5, np.nan, 2.0]", "[4.0, 1e10, 0.0, 1e300]"))
    n, c = r.choice(("3", "0", "-2", "70", "2**40")), r.choice(("0.5", "0.0", "-2.0", "1e200"))
    arguments = (
        f"np.array({u}), np.full(4, 0.5), np.arange(5.0), np.arange(4, dtype=np.int32), "
        f"np.arange(1, 5), np.array([True, False, True, True]), {n}, {c}"
    )
    text = module_text(lines, arguments, "u, v, w, k, j, m, n, c", "G = np.arange(4.0)")
    return Case("errors", seed, text, tuple(labels))
