# %% [markdown]
# # Mixed precision
#
# A body of finite elements, whose matrix has hardly two equal values. In mixed precision products
# read these values in float32, which halves most of what comes from memory. Vectors, sums and the
# residual b - A x stay in float64, so that the answer is as accurate as without it.

# %%
import numpy as np

import cpufree

A = cpufree.generate.generate("geomech_tet", shape=(8, 8, 8), penalty=1.0).tocsr()
b = np.random.default_rng(1).standard_normal(A.shape[0])

for precision in (None, "mixed"):
    with cpufree.Solver(A, precision=precision, pc="jacobi") as solver:
        result = solver.solve(b, rtol=1e-10)
        print(f"{precision or 'double'}: {result.message}")
        print(f"  true residual {np.linalg.norm(b - A @ result.x) / np.linalg.norm(b):.1e}")
        print(f"  residual replaced {result.counts['replacements']} times")

# %% [markdown]
# A matrix that rounding to float32 makes indefinite is not solved, and the report says so.

# %%
q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((60, 60)))
hard = (q * np.logspace(0, -11, 60)) @ q.T
hard = (hard + hard.T) / 2
result = cpufree.solve(hard, np.ones(60), rtol=1e-8, precision="mixed", method="cg")
print(result.message)
print(result.warnings[-1] if result.warnings else "")
