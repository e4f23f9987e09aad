#!/usr/bin/env bash
# Programs on GPUs: first that they are right, then how fast they are. Results in OUT.
# Usage: bench/gpu_programs.sh OUT [SECONDS]; PYTHONPATH names a build of cpufree with GPU engine.
# TESTS_SECONDS (120) ends the tests. GPUS (1,2): numbers of GPUs; PROGRAMS: those to be measured.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/gpu_programs.sh OUT [SECONDS]}
seconds=${2:-200}
mkdir -p "$out"
# A kernel that spins must not wait for the loading of another. Multicast stays off.
export CUDA_MODULE_LOADING=EAGER PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
export CPUFREE_KERNEL_CACHE=${CPUFREE_KERNEL_CACHE:-$(mktemp -d)}
timeout ${TESTS_SECONDS:-120} python3 -m pytest -q -p no:cacheprovider --timeout 60 \
    tests/python/gpu/test_gpu_programs.py >"$out/gpu-programs-tests.txt" 2>&1
echo "tests: exit $?"
tail -40 "$out/gpu-programs-tests.txt" | cut -c1-200
timeout $((seconds + 20)) python3 bench/gpu_programs.py --seconds "$seconds" \
    ${GPUS:+--gpus "$GPUS"} ${PROGRAMS:+--programs "$PROGRAMS"} --out "$out/gpu-programs.jsonl"
echo "benchmark: exit $?"
