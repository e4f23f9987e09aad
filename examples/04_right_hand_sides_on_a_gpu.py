# %% [markdown]
# # Right-hand sides that lie on a GPU
#
# `b` may be an array of CuPy or a tensor of PyTorch on a GPU. The solution is then one, too, on the
# same GPU; neither passes through the host.

# %%
import sys

import numpy as np

import cpufree

try:
    import cupy
except ImportError:
    print("skipped: CuPy is not installed (pip install cupy-cuda13x)")
    sys.exit()
try:
    gpus = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(f"skipped: no GPU here ({error})")
    sys.exit()

# %% [markdown]
# The matrix is set up once and stays on the GPUs; each solve then costs no more than itself.

# %%
A = cpufree.generate.poisson2d(nx=300, ny=300)
x_axis = cupy.linspace(0.0, 1.0, A.shape[0])
worst = 0.0
with cpufree.Solver(A, engine="cuda_p2p", pes=1) as solver:
    for k in range(1, 5):
        b = cupy.sin(k * x_axis)
        result = solver.solve(b, rtol=1e-9)
        assert isinstance(result.x, cupy.ndarray)
        host = cupy.asnumpy(result.x)
        error = np.linalg.norm(A @ host - cupy.asnumpy(b)) / np.linalg.norm(cupy.asnumpy(b))
        worst = max(worst, float(error))

# %%
print(f"GPUs: {gpus}")
print(f"largest relative residual: {worst:.1e}")
