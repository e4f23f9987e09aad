# %% [markdown]
# # Several processes, each with rows of its own
#
# Started by a launcher, the same program runs as several processes ("ranks"):
#
#     cpufree run -n 3 python 06_several_processes.py
#
# (or mpirun, srun, torchrun). No process holds the whole matrix: each gives its own rows. Without
# a launcher the example starts itself that way.

# %%
import subprocess
import sys

import numpy as np

import cpufree

n = 900

if "rank" not in sys.argv[1:]:
    run = [sys.executable, "-m", "cpufree", "run", "-n", "3", sys.executable, __file__, "rank"]
    sys.exit(subprocess.run(run).returncode)

# %% [markdown]
# Here we are one of the ranks. `solver.rows` are the numbers of the rows that it was given; `b` and
# `x` have their entries in that order. The solution is 1 everywhere. On this engine ranks share
# memory of the host; with a GPU for each it is "nvshmem".

# %%
rows = cpufree.open_rows(f"gen:poisson1d?n={n}")
with cpufree.Solver(rows, engine="cpu_processes") as solver:
    b = np.isin(solver.rows, (0, n - 1)).astype(np.float64)
    result = solver.solve(b, rtol=1e-10)

# %%
error = np.abs(result.x - 1.0).max()
line = f"{len(solver.rows)} rows from {solver.rows[0]}: largest error {error:.1e}\n"
print(line, end="", flush=True)  # in one piece, as several ranks write to the same terminal
