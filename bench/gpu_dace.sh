#!/usr/bin/env bash
# Distributed programs of DaCe on two GPUs, or on GPUS (2): that they are right, and how fast they are.
# Usage: bench/gpu_dace.sh OUT CASES LIBRARIES [checks|timings|all] [SECONDS]; PYTHONPATH names a
# build of cpufree with GPU engine. CASES is the folder that bench/dace_cases.py has written where
# DaCe is installed, LIBRARIES that of bench/dace_gpu_build.py; "" leaves DaCe's own code out.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/gpu_dace.sh OUT CASES LIBRARIES [checks|timings|all] [SECONDS]}
cases=${2:?usage: bench/gpu_dace.sh OUT CASES LIBRARIES [checks|timings|all] [SECONDS]}
libraries=${3-}
what=${4:-all}
seconds=${5:-60}
mkdir -p "$out"
# A kernel that spins must not wait for the loading of another. Multicast stays off.
export CUDA_MODULE_LOADING=EAGER PYTHONUNBUFFERED=1 NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
export CPUFREE_KERNEL_CACHE=${CPUFREE_KERNEL_CACHE:-$(mktemp -d)}

if [ "$what" != timings ]; then
    timeout 110 python3 -m pytest -q -p no:cacheprovider --timeout 60 --maxfail 6 \
        tests/python/gpu/test_gpu_dace.py >"$out/gpu-dace-tests.txt" 2>&1
    echo "tests: exit $?"
    tail -40 "$out/gpu-dace-tests.txt" | cut -c1-200
fi
[ "$what" = checks ] && exit 0

if command -v mpirun >/dev/null && [ -n "$libraries" ]; then
    mpi=(mpirun --allow-run-as-root --oversubscribe --mca btl self,vader --mca pml ob1)
    for ranks in 1 2 4; do
        [ "$ranks" -le "${GPUS:-2}" ] || continue
        timeout 30 "${mpi[@]}" -np "$ranks" python3 bench/dace_gpu_rival.py "$libraries" \
            jacobi_1d-{1,2}-{1024,1048576} jacobi_2d-1-1024x1024 \
            jacobi_2d-{1,2}-{512x1024,1024x2048} jacobi_2d-2-4096x8192 \
            jacobi_2d-4-{512x512,1024x1024} \
            --out "$out/gpu-dace-mpi.jsonl"
        echo "DaCe's own GPU code, $ranks processes: exit $?"
    done
    timeout 30 "${mpi[@]}" -np 2 python3 bench/dace_mpi_rival.py --out "$out/gpu-dace-hand.jsonl"
    echo "by hand, through MPI: exit $?"
fi
timeout 45 python3 bench/dace_puts.py "$cases" --out "$out/gpu-dace-puts.jsonl"
echo "puts: exit $?"
timeout $((seconds + 20)) python3 bench/gpu_dace.py "$cases" --seconds "$seconds" --gpus "${GPUS:-2}" \
    --out "$out/gpu-dace.jsonl"
echo "benchmark: exit $?"
