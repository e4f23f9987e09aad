"""The GPUs: what they are, and how they are linked."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from cpufree.extension import load_core
from cpufree.host import run_tool

SMI = "nvidia-smi"
QUERY = ("index", "name", "driver_version", "memory.total", "clocks.max.sm", "power.limit")


def describe_gpus(engine: str) -> dict[str, Any]:
    """Return what the core and the driver's tools say about the GPUs; empty for the CPU engine."""
    if engine != "cuda_p2p":
        return {"listed": [], "driver": None, "cuda": None, "links": {}}
    smi = run_tool([SMI, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"]) or ""
    rows = [[word.strip() for word in line.split(",")] for line in smi.splitlines()]
    head = re.search(r"CUDA Version: *([\d.]+)", run_tool([SMI]) or "")
    compiler = re.search(r"release ([\d.]+)", run_tool(["nvcc", "--version"]) or "")
    return {
        "listed": [dict(gpu) for gpu in load_core().gpus()],
        "smi": [dict(zip(QUERY, row, strict=False)) for row in rows],
        "driver": rows[0][2] if rows and len(rows[0]) > 2 else None,
        "cuda": head[1] if head else None,
        "nvcc": compiler[1] if compiler else None,
        "links": count_links(run_tool([SMI, "topo", "-m"]) or ""),
    }


def count_links(topology: str) -> dict[str, int]:
    """Return how many pairs of GPUs have which link (NV18: 18 NVLinks), out of `topo -m`."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", topology)
    # The line of headings may begin like a row.
    rows = [line.split() for line in plain.splitlines() if re.match(r"GPU\d+\s+(?!GPU)", line)]
    links = Counter(
        rows[i][1 + j] for i in range(len(rows)) for j in range(i) if 1 + j < len(rows[i])
    )
    return dict(links)
