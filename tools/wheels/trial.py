"""What a wheel is tried with: run by each interpreter in a clean environment, with no part of ours.

Prints one line of JSON: seconds of import and first solve, levels of the CPU's kernels, bits, and
what a wheel with the GPU engine says of GPUs.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import sys
import time
from pathlib import Path

begin = time.perf_counter()
import cpufree  # noqa: E402 - what is timed

imported = time.perf_counter()
A = cpufree.generate.poisson2d(nx=400, ny=400)
first = cpufree.solve(A, A.sum(axis=1))
solved = time.perf_counter()
assert first.converged and abs(first.x - 1).max() < 1e-3, first

import numpy as np  # noqa: E402

from cpufree.extension import load_core  # noqa: E402

# Two PEs of rows that are not in order: METIS shares them out where it is installed.
order = np.random.default_rng(3).permutation(3600)
shuffled = cpufree.generate.poisson2d(nx=60, ny=60)[order][:, order]
wanted = np.sin(np.arange(3600.0))
bits = hashlib.sha256()
for method in ("cg", "prcg", "pipecg"):
    for dtype, rtol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        b = (shuffled @ wanted).astype(dtype)
        with cpufree.Solver(shuffled, pes=2, blocks=1, dtype=dtype, partition="contiguous") as it:
            one = it.solve(b, method=method, rtol=rtol)
        assert one.converged and abs(one.x - wanted).max() < 1e4 * rtol, one
        bits.update(one.x.tobytes())
with cpufree.Solver(shuffled, pes=2, blocks=1) as solver:
    two = solver.solve(shuffled @ wanted, rtol=1e-10)
assert two.converged and abs(two.x - wanted).max() < 1e-6, two
with cpufree.triggered.Domain(pes=2):
    pass  # the other extension loads

metis = importlib.util.find_spec("pymetis") is not None
try:
    cpufree.Solver(shuffled, pes=2, partition="metis").close()
    assert metis, "METIS was taken, which is not there"
except cpufree.UnsupportedError as error:
    assert not metis and "pymetis" in str(error), error

files = [str(file) for file in importlib.metadata.files("cpufree") or ()]
notices = ("LICENSE", "THIRD_PARTY_NOTICES.md", "cpufree/CITATION.cff")
missing = [name for name in notices if not any(file.endswith(name) for file in files)]
assert not missing, f"the wheel leaves out {missing}"
core = load_core()
kernels = len(list(Path(str(core.__file__)).parent.glob("kernels/*.kernel")))
gpus = f"{kernels} GPU kernels" if core.gpu_vendor() else ""
if gpus:
    assert kernels, "the wheel leaves out the kernels for GPUs"
    try:
        with cpufree.Solver(shuffled, pes=1, engine="cuda_p2p") as on_gpu:
            assert on_gpu.solve(shuffled @ wanted, rtol=1e-10).converged
    except cpufree.UnsupportedError as error:
        gpus += f" ({error})"
said = {
    "python": "{}.{}".format(*sys.version_info[:2]),
    "version": cpufree.__version__,
    "place": str(core.__file__),
    "import": imported - begin,
    "first_solve": solved - imported,
    "level": core.cpu_level(),
    "levels": core.cpu_levels(),
    "bits": bits.hexdigest(),
    "metis": metis,
    "gpus": gpus,
}
print(json.dumps(said))
