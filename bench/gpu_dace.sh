#!/usr/bin/env bash
# Distributed programs of DaCe on GPUs: first that they are right, then how fast they are.
# Usage: bench/gpu_dace.sh OUT CASES [SECONDS]; PYTHONPATH names a build of cpufree with GPU engine,
# CASES is the folder that bench/dace_cases.py has written where DaCe is installed.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/gpu_dace.sh OUT CASES [SECONDS]}
cases=${2:?usage: bench/gpu_dace.sh OUT CASES [SECONDS]}
seconds=${3:-90}
mkdir -p "$out"
# A kernel that spins must not wait for the loading of another. Multicast stays off.
export CUDA_MODULE_LOADING=EAGER PYTHONUNBUFFERED=1 NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
export CPUFREE_KERNEL_CACHE=${CPUFREE_KERNEL_CACHE:-$(mktemp -d)}
timeout "${TESTS_SECONDS:-100}" python3 -m pytest -q -p no:cacheprovider --timeout 60 --maxfail 6 \
    tests/python/gpu/test_gpu_dace.py >"$out/gpu-dace-tests.txt" 2>&1
echo "tests: exit $?"
tail -40 "$out/gpu-dace-tests.txt" | cut -c1-200
if command -v mpirun >/dev/null && python3 -c 'import mpi4py, cupy' 2>/dev/null; then
    timeout 60 mpirun --allow-run-as-root --oversubscribe -np 2 python3 bench/dace_mpi_rival.py \
        --out "$out/gpu-dace-mpi.jsonl"
    echo "host-driven through MPI: exit $?"
fi
timeout $((seconds + 30)) python3 bench/gpu_dace.py "$cases" --seconds "$seconds" \
    --out "$out/gpu-dace.jsonl"
echo "benchmark: exit $?"
