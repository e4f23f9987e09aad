"""Programs of products of matrices and vectors, and of arrays that are read whole."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Arguments: A (7, 5), B (5, 6), C (7, 6), x (5,), y (7,).
# Holes: a of A's shape, b of B's, v of x's.
_CONSTRUCTS = {
    "matrix and vector": ("y += {a} @ {v}", "y[:] = np.dot({a}, {v})", "r = A @ {v} - y",
                          "r = np.matmul({a}, x)"),
    "vector and matrix": ("x[:] = y @ A", "r = y @ {a}", "r = x @ {b}", "r = (A @ x) @ A"),
    "matrices": ("C[...] = {a} @ {b}", "C += A @ B", "r = {a} @ {b}", "r = np.inner(A, A)",
                 "C -= 0.5 * np.matmul(A, {b})"),
    "transposed": ("r = {a}.T @ {a}", "r = A @ {a}.T", "r = np.transpose({a}) @ y", "r = y @ A - x",
                   "r = {b} @ B.transpose()", "B += {a}.T @ C", "r = {v} @ A.T",
                   "r = (y @ {a}).T @ A.T"),
    "several": ("r = A @ B @ (B[0] + C[0])", "r = (A @ B) @ (B[:, 0] @ B)", "r = A @ (B @ C[0])",
                "hidden = np.maximum(A @ B + C[0], 0.0)\nr = hidden @ B[0]"),
    "vectors": ("r = {v} @ x", "r = np.dot(y, y)"),
    "both axes": ("y += np.sum(A, axis=1)\nx += np.sum(A, axis=0)", "r = A - np.mean(B[:, 0])",
                  "r = np.sum(B, axis=0), np.sum(B, axis=1)"),
    "rows from far": ("C += B[0]", "C[:] = C * B[2] + B[-1]", "x += B[:, 1]",
                      "A[...] = A * B[:, 0]"),
    "axes of one point": ("A -= 0.1 * np.reshape(y, (7, 1))", "C += y.reshape(7, 1) * B[0]",
                          "r = x.reshape((1, -1)) * A", "C /= 2.0 + np.abs(y).reshape(7, 1)"),
    "refused": ("r = B.T @ A.T", "r = A.T @ B", "r = A.T + x",
                "r = B @ A", "r = A @ y", "r = np.reshape(A, (5, 7))", "A @= B", "A @= x",
                "x @= x", "C @= C"),
}  # fmt: skip
_WEIGHTS = {"refused": 1}


def write_products(seed: int) -> Case:
    """Return a program with products of matrices."""
    r = random.Random(f"products/{seed}")
    labels, lines = [], ["r = 0"]
    for _ in range(r.choice((1, 1, 2, 3))):
        weights = [_WEIGHTS.get(name, 4) for name in _CONSTRUCTS]
        (label,) = r.choices(list(_CONSTRUCTS), weights)
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label])
        for hole, choices in (
            ("{a}", ("A", "(2.0 * A)", "(A + A)", "np.abs(A)")),
            ("{b}", ("B", "(B * B)", "B.copy()")),
            ("{v}", ("x", "(x + 1.0)", "A[0]")),
        ):
            while hole in text:
                text = text.replace(hole, r.choice(choices), 1)
        lines += text.splitlines()
    if r.random() < 0.3:
        labels.append("in a loop")
        lines = [lines[0], "for turn in range(2):"] + [f"    {line}" for line in lines[1:]]
    kind = r.choice(("float64", "float64", "float32"))
    shapes = ((7, 5), (5, 6), (7, 6), (5,), (7,))
    made = [f"np.random.default_rng({seed + k}).random({s}).astype(np.{kind})"
            for k, s in enumerate(shapes)]  # fmt: skip
    lines.append("return r, C, x, y")
    text = module_text(lines, ", ".join(made), "A, B, C, x, y")
    return Case("products", seed, text, tuple(dict.fromkeys(labels)))
