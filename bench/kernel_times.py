"""Times how long NVRTC takes for kernels of solvers, as they are compiled when they are first used.

Usage: python bench/kernel_times.py OUT.json [--architecture sm_90]

Needs NVRTC, no GPU. Each kernel is compiled twice; the lesser time of this process counts: other
work on the machine changes it little. Texts are those of
systems/gpu/compiled/kernel_source.cpp, headers those of the source tree. "for any": the kernel for
matrices of all kinds, as it comes with a wheel.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python/support"))

import nvrtc  # type: ignore[import-not-found]  # noqa: E402
import records  # noqa: E402

from cpufree.host import processor_name, read_text  # noqa: E402

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
    ("cg", "amg", "what occurs"),
    ("pipecg", "jacobi", "what occurs"),
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


def timed(text: str, architecture: str) -> tuple[float, int]:
    """Return the processor's seconds for a text, and the bytes of its code."""
    best, size = float("inf"), 0
    for _ in range(2):
        begin = time.process_time()
        size = len(nvrtc.compile_text(text, architecture, nvrtc.OPTIONS[:3]))
        best = min(best, time.process_time() - begin)
    return best, size


def main() -> int:
    """Time all kernels; write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT.json")
    parser.add_argument("--architecture", default="sm_90", help="of a GPU (%(default)s)")
    given = parser.parse_args()
    if not nvrtc.find():
        sys.exit("kernel_times: NVRTC was not found: pip install 'nvidia-cuda-nvrtc>=13,<14'")
    nvrtc.compile_text('extern "C" __global__ void nothing() {}', given.architecture)
    kernels = []
    for method, preconditioner, form in KERNELS:
        seconds, size = timed(text_of(method, preconditioner, form), given.architecture)
        kernels.append(
            {
                "method": method,
                "pc": preconditioner,
                "for": form,
                "seconds": round(seconds, 2),
                "bytes": size,
            }
        )
        print(f"{method:8s} {preconditioner:10s} {form:12s} {seconds:6.2f} s {size:8d} bytes")
    record: dict[str, Any] = {
        "command": f"python bench/kernel_times.py {given.out.name}",
        "date": datetime.date.today().isoformat(),
        "machine": processor_name(read_text("/proc/cpuinfo")),
        "compiler": Path(nvrtc.find()).name,
        "architecture": given.architecture,
        "kernels": kernels,
    }
    records.write(record, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
