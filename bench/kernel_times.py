"""How long NVRTC takes for kernels of solvers, as they are compiled when they are first used.

Needs NVRTC, no GPU. Seconds are the processor's, to which other work on the machine adds little.
Texts are those of solvers/gpu/compiled/kernel_source.cpp, headers those of the source tree. "any":
the kernel for matrices of all kinds, as it comes with a wheel.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.errors import CpufreeError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python/support"))

import nvrtc  # type: ignore[import-not-found]

METHODS = {"cg": "ConjugateGradient", "prcg": "PredictRecompute", "pipecg": "PipelinedCg"}
PRECONDITIONERS = {
    "none": "Identity", "jacobi": "Jacobi", "chebyshev": "Chebyshev", "fsai": "Factored",
    "amg": "Multigrid",
}  # fmt: skip
FORMATS = {
    "what occurs": "SlicesOf<5>",  # single columns, values as they are
    "on chip": "SlicesOnChipOf<16>",
    "any": "AnySlices",
}
KERNELS = [
    *(("prcg", pc, "what occurs") for pc in PRECONDITIONERS),
    ("cg", "jacobi", "what occurs"),
    ("cg", "chebyshev", "what occurs"),
    ("cg", "amg", "what occurs"),
    ("pipecg", "jacobi", "what occurs"),
    ("pipecg", "chebyshev", "what occurs"),
    ("prcg", "jacobi", "on chip"),
    ("prcg", "jacobi", "any"),
]


def text_of(method: str, preconditioner: str, form: str) -> str:
    """Return the text of a kernel in double precision."""
    return f"""#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/multigrid/cycle.hpp"
using namespace cpufree;
extern "C" __global__ void __launch_bounds__(512, 1)
run_on_gpu(const __grid_constant__ gpu_p2p::Shared shared,
           const __grid_constant__ SolveArgs<WarpSlices<double>, 1> args) {{
  extern __shared__ double2 fast[];
  gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<{METHODS[method]}, {PRECONDITIONERS[preconditioner]}<double>, {FORMATS[form]}>(
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
