"""How long NVRTC takes for kernels of solvers, as they are compiled when they are first used.

Needs NVRTC, no GPU. Seconds are the processor's, to which other work on the machine adds little.
Texts are those of solvers/gpu/compiled/kernel_source.cpp, headers those of the source tree. "what
occurs": single columns, values as they are; "several GPUs": the same with ghosts as packets. "any":
the kernel for matrices of all kinds, as it comes with a wheel; no solve waits for it.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.errors import CpufreeError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python/support"))

import nvrtc  # type: ignore[import-not-found]

METHODS = {
    "cg": "ConjugateGradient", "prcg": "PredictRecompute", "pipecg": "PipelinedCg",
    "minres": "MinimalResidual", "bicgstab": "StabilizedBiCg",
}  # fmt: skip
PRECONDITIONERS = {
    "none": "Identity", "jacobi": "Jacobi", "chebyshev": "Chebyshev", "fsai": "Factored",
    "amg": "Multigrid",
}  # fmt: skip
FORMS = {  # port, format, right-hand sides
    "what occurs": ("Port", "SlicesOf<5>", 1),
    "runs": ("Port", "SlicesOf<6>", 1),
    "few values": ("Port", "SlicesOf<9>", 1),
    "small": ("Port", "SlicesOf<21>", 1),
    "streamed": ("StreamingPort", "SlicesOf<5>", 1),
    "streamed, several GPUs": ("StreamingPort", "SlicesOf<69>", 1),
    "several GPUs": ("Port", "SlicesOf<69>", 1),
    "on chip": ("Port", "SlicesOnChipOf<16>", 1),
    "mixed precision": ("StreamingPort", "SlicesOf<133>", 1),
    "8 columns": ("Port", "SlicesOf<5>", 8),
    "any": ("Port", "AnySlices", 1),
}
KERNELS = [
    *(("prcg", pc, "what occurs") for pc in PRECONDITIONERS if pc != "amg"),
    *(("cg", pc, "what occurs") for pc in ("jacobi", "chebyshev", "amg")),
    *(("pipecg", pc, "what occurs") for pc in ("jacobi", "chebyshev", "fsai")),
    *((method, "jacobi", "what occurs") for method in ("minres", "bicgstab")),
    *(("prcg", "jacobi", form) for form in FORMS if form not in ("what occurs", "8 columns")),
    ("cg", "amg", "several GPUs"),
    ("pipecg", "chebyshev", "streamed, several GPUs"),
    ("cg", "jacobi", "8 columns"),
]


def text_of(method: str, preconditioner: str, form: str) -> str:
    """Return the text of a kernel in double precision."""
    port, slices, columns = FORMS[form]
    product = "warp_columns" if columns > 1 else "warp_slices"
    header = "streaming_port" if port == "StreamingPort" else "port"
    return f"""#include "cpufree/engines/gpu_p2p/{header}.cuh"
#include "cpufree/formats/{product}.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/multigrid/cycle.hpp"
using namespace cpufree;
extern "C" __global__ void __launch_bounds__(512, 1)
run_on_gpu(const __grid_constant__ gpu_p2p::Shared shared,
           const __grid_constant__ SolveArgs<WarpSlices<double>, {columns}> args) {{
  extern __shared__ double2 fast[];
  gpu_p2p::{port} port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<{METHODS[method]}, {PRECONDITIONERS[preconditioner]}<double>, {slices}>(
      port, args);
}}
"""


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    if not nvrtc.find():
        raise CpufreeError("NVRTC was not found: pip install 'nvidia-cuda-nvrtc>=13,<14'")
    case.facts["compiler"] = Path(nvrtc.find()).name

    def compiled() -> dict[str, Any]:
        begin = time.process_time()
        code = nvrtc.compile_text(text_of(*case.kernel), case.architecture, nvrtc.OPTIONS[:3])
        return {"seconds": time.process_time() - begin, "bytes": len(code)}

    yield {"NVRTC": compiled}


BENCH = Bench(
    name="kernel-times",
    set_up=set_up,
    axes={"kernel": {", ".join(one): one for one in KERNELS}, "architecture": ("sm_90",)},
    unit="s",
    shown=("bytes",),
    cold=True,
    repeats=2,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
