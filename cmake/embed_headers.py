"""Writes a C++ file that holds the headers of the kernels as text.

    python cmake/embed_headers.py OUT.cpp [DEPFILE [VENDOR]]

Kernels that are compiled on the user's machine are made of them, so that the library needs no
folder of headers beside it. Standard headers become cpufree/gpu/device_std.hpp. DEPFILE: a
makefile's line that says which files OUT.cpp is made of. VENDOR: cuda or hip, whose GPUs the
kernels are for.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
STANDARD = "cpufree/gpu/device_std.hpp"
# What the texts of kernels include (cpufree/solvers/gpu/compiled/kernel_source.cpp).
ROOTS = (
    "cpufree/engines/gpu_p2p/bulk_put.cuh",
    "cpufree/engines/gpu_p2p/free_port.cuh",
    "cpufree/engines/gpu_p2p/port.cuh",
    "cpufree/engines/gpu_p2p/streaming_port.cuh",
    "cpufree/formats/csr_rows.hpp",
    "cpufree/formats/layout/kernels.hpp",
    "cpufree/formats/warp_columns.hpp",
    "cpufree/formats/warp_slices.hpp",
    "cpufree/multigrid/cycle.hpp",
    "cpufree/multigrid/setup/kernels.hpp",
    "cpufree/probes/kernel.hpp",
    "cpufree/probes/patterns.hpp",
    "cpufree/programs/grid_runtime.hpp",
    "cpufree/programs/hosted_runtime.hpp",
    "cpufree/programs/messages.hpp",
    "cpufree/programs/solo_port.hpp",
    "cpufree/programs/stream_runtime.hpp",
    "cpufree/programs/tile_runtime.hpp",
    "cpufree/solvers/block_cg.hpp",
    "cpufree/solvers/kernel.hpp",
    "cpufree/solvers/many.hpp",
    "cpufree/solvers/study.hpp",
    "cpufree/stencils/jacobi.hpp",
    "cpufree/stencils/registers_3d.hpp",
    "cpufree/stencils/time_tiles.hpp",
    "cpufree/solvers/gpu/kernels/vector_entries.cuh",
    "cpufree/probes/gpu/reading.cuh",
    "cpufree/probes/gpu/tiles.cuh",
)
# What texts of kernels begin and end with (cpufree/gpu/hip/gpu_compiler.hpp).
FIRST: dict[str, tuple[str, ...]] = {
    "cuda": (),
    "hip": ("cpufree/gpu/hip/prelude.hpp", "cpufree/gpu/hip/end.hpp"),
}
INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<([^>]+)>)', re.M)
PIECE = 12_000  # characters of a literal: compilers take 65 536 and no more


def headers_of(roots: tuple[str, ...] = ROOTS, vendor: str = "cuda") -> dict[str, str]:
    """Return name and text of the headers that `roots` include, and of the standard's."""
    found: dict[str, str] = {}
    waiting = [STANDARD, *roots, *FIRST[vendor]]
    others = tuple(f"/{other}/" for other in FIRST if other != vendor)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = text = (REPOSITORY / name).read_text(encoding="utf-8")
        for own, standard in INCLUDE.findall(text):
            if own and not any(other in own for other in others):
                waiting.append(own)
            elif standard:
                found.setdefault(standard, f'#include "{STANDARD}"\n')
    return dict(sorted(found.items()))


def literal(text: str) -> str:
    """Return C++ that means `text`: raw literals, one behind the other."""
    pieces = [text[k : k + PIECE] for k in range(0, len(text), PIECE)] or [""]
    return "\n".join(f'R"~~~({piece})~~~"' for piece in pieces)


def source(headers: dict[str, str]) -> str:
    """Return the C++ file."""
    lines = [
        "// Made by cmake/embed_headers.py.",
        '#include "cpufree/launch/gpu/compiled/kernel_headers.hpp"',
        "namespace cpufree {",
        "const std::vector<std::pair<const char*, const char*>>& kernel_headers() {",
        "  static const std::vector<std::pair<const char*, const char*>> all = {",
    ]
    lines += [f'{{"{name}", {literal(text)}}},' for name, text in headers.items()]
    return "\n".join([*lines, "  };", "  return all;", "}", "}  // namespace cpufree", ""])


def main() -> None:
    """Write the files; the C++ file only where it would change."""
    out = Path(sys.argv[1])
    headers = headers_of(vendor=sys.argv[3] if len(sys.argv) > 3 else "cuda")
    text = source(headers)
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    if len(sys.argv) > 2:
        files = [str(REPOSITORY / name) for name in headers if (REPOSITORY / name).exists()]
        escaped = [name.replace(" ", "\\ ") for name in (str(out), *files)]
        Path(sys.argv[2]).write_text(f"{escaped[0]}: {' '.join(escaped[1:])}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
