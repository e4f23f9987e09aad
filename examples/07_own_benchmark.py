# %% [markdown]
# # A benchmark of your own
#
# `cpufree bench cg` measures solvers on any matrix: everybody gets the same arrays, solves are
# interleaved in random order, and each answer is checked. Here: a matrix of our own, against SciPy.
# Both run without preconditioner, for as many iterations.

# %%
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import cpufree

folder = Path(tempfile.mkdtemp())
matrix, records = folder / "cube.mtx", folder / "records.jsonl"
cpufree.save_matrix(matrix, cpufree.generate.poisson3d(nx=48, ny=48, nz=48))
command = f"bench cg {matrix} --contenders cpufree,scipy --methods cg --pes 1 --pc none --repeats 3"
command += f" --iterations 40 --engine cpu_threads --out {records}"
subprocess.run([sys.executable, "-m", "cpufree", *command.split()], check=True)

# %% [markdown]
# Records are JSON lines. `cpufree bench report` makes tables and plots of them; a program can read
# them as well.

# %%
lines = [json.loads(line) for line in records.read_text().splitlines()]
median = {}
for name in ("cpufree", "scipy"):
    mine = [line for line in lines if line.get("contender") == name]
    solves = [line for line in mine if line["kind"] == "measurement"]
    seconds = statistics.median(line["seconds"] / line["iterations"] for line in solves)
    median[name] = 1e6 * seconds
    residual = next(line["true_residual"] for line in mine if line["kind"] == "check")
    print(f"{name}: {median[name]:.1f} µs per iteration, true residual {residual:.6e}")

# %% [markdown]
# A picture of both times: shorter is better.

# %%
figure, ax = plt.subplots(figsize=(7, 2), layout="constrained")
bars = ax.barh(list(median), list(median.values()))
ax.bar_label(bars, fmt=" %.0f µs")
ax.set(title="an iteration of conjugate gradients", xlabel="µs", xmargin=0.15)
picture = folder / "times.png"
figure.savefig(picture)
print(f"picture: {picture}")
