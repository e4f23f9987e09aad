"""What the papers' figures were measured with: machines, libraries, repositories, commits."""

from __future__ import annotations

from tools.results.records import markdown

# Each line is what the paper itself says: section or page in the last column.
USED = (
    (
        "Ismayilov 2023",
        "8 A100, NVLink",
        "CUDA 11.8, driver 495.29.05, NVSHMEM 2.7.0, Open MPI 4.1.4; PETSc 3.17.4 with Open MPI "
        "4.1.5; start: NVIDIA's sample conjugateGradientMultiDeviceCG, commit not stated",
        "3.4",
    ),
    (
        "Baydamirli 2023",
        "8 A100, NVLink",
        "CUDA 11.8, driver 496.29.05, NVSHMEM 2.7.0, Open MPI 4.1.4; baselines: NVIDIA's "
        "multi-gpu-programming-models, commit not stated; DaCe: master commit c432824, CUDA 12.2, "
        "NVSHMEM 2.9.0, Python 3.10.8",
        "chapter 6",
    ),
    (
        "Trotter et al. 2025",
        "LUMI; MareNostrum 5; Wisteria-A",
        "ROCm 6.0.3, RCCL 2.18.3, Cray MPICH 8.1.29; HPC SDK 25.1, CUDA 12.6, HPC-X 2.21; HPC SDK "
        "24.1, CUDA 12.3, HPC-X 2.17.1; NCCL 2.18.5, NVSHMEM 3.1.7 (IBRC), PETSc 3.21.5, METIS "
        "5.1.0; aCG's commit not stated",
        "4.1",
    ),
    (
        "LeBeane et al. 2017",
        "gem5, AMD's public GPU model",
        "configuration in their Table 2; commits not stated",
        "5.1",
    ),
    (
        "Groves et al. 2020",
        "Summit",
        "gcc 6.4.0, CUDA 10.1.168, Spectrum MPI 10.3.1.2, NVSHMEM 0.3.0; gitlab.com/h4u5/gpu-comm "
        "3988559446a4c17125654d173cece6f71ef57a5a; BCL 2ac6da10c96375e2750bb36239f86ee2cb32785a; "
        "perftest 6369e620429197f7cc0b6bfc9734fe70f0b92f0 (39 digits, as printed)",
        "appendix",
    ),
)


def versions() -> str:
    """Return what each paper used."""
    return markdown(["paper", "machines", "software", "where it says so"], [[*one] for one in USED])
