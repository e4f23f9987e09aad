"""Figures that others have published, of other machines: context, no opponents.

Nothing here is compared with what was measured: machines, drivers and kernels differ.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Context:
    """A table out of a publication."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


ICS23 = (
    "data behind the figures of Ismayilov, Baydamirli, Sağbili, Wahib and Unat 2023, Multi-GPU "
    "Communication Schemes for Iterative Solvers: When CPUs Are Not in Charge (ICS), in the "
    "repository ParCoreLab/CPU-Free-model; 8 × NVIDIA A100, single precision"
)

PUBLISHED = (
    Context(
        "Two dimensions, weak scaling, at 8 GPUs",
        f"figure 5: {ICS23}",
        ("256x256 per GPU", "2048x1024 per GPU"),
        (
            ("Baseline Copy", "81.4", "83.8"),
            ("Baseline Overlap", "100.9", "102.6"),
            ("Baseline P2P", "61.5", "63.7"),
            ("Baseline NVSHMEM", "14.7", "24.2"),
            ("CPU-Free", "11.5", "12.4"),
            ("CPU-Free with PERKS", "16.7", "14.6"),
        ),
    ),
    Context(
        "Two dimensions, fixed grids, at 8 GPUs",
        f"medians of 100 000 iterations: {ICS23}",
        ("1024²", "2048²", "4096²", "8192²", "16384²"),
        (
            ("Baseline Copy", "83.1", "81.3", "80.7", "85.7", "236.9"),
            ("Baseline Overlap", "103.0", "100.9", "102.3", "102.2", "218.8"),
            ("Baseline P2P", "65.1", "64.4", "66.4", "69.7", "229.6"),
            ("CPU-Free, one stream", "4.44", "6.22", "15.5", "80.7", "269.5"),
        ),
    ),
)
