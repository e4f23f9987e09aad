#!/usr/bin/env bash
# Time to solution on GPUs: set-ups, scripts against CuPy's, commands from files, what "auto" chooses.
# Results, a table and a log in OUT. Usage: bench/gpu_time.sh OUT [SECONDS]; PYTHONPATH names a build
# of cpufree with GPU engine, else that of tools/build_gpu.sh is taken. Also ENGINE, GPUS, STEPS,
# SMALL=1; MATRICES: a folder where they stay; MORE: other options of bench/gpu_time.py.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: bench/gpu_time.sh OUT [SECONDS]}
seconds=${2:-150}
python=${PYTHON:-python3}
mkdir -p "$out"
if [ "${ENGINE:-cuda_p2p}" = cuda_p2p ]; then
    for place in build/gpu-usual/python build/gpu/python; do
        [ -d "$place" ] && export PYTHONPATH=${PYTHONPATH:-$PWD/$place}
    done
fi
# As pip does: a package that was copied has no bytecode, and PYTHONDONTWRITEBYTECODE may keep it so.
"$python" -c 'import compileall, sys; from importlib.util import find_spec
compileall.compile_dir(find_spec("cpufree").submodule_search_locations[0], quiet=2)'
# A kernel that spins must not wait for the loading of another. Multicast stays off.
export CUDA_MODULE_LOADING=EAGER PYTHONUNBUFFERED=1
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
export CPUFREE_KERNEL_CACHE=${CPUFREE_KERNEL_CACHE:-$(mktemp -d)}
timeout -k 10 $((seconds + 15)) "$python" bench/gpu_time.py "$out" --seconds "$seconds" \
    --engine "${ENGINE:-cuda_p2p}" --gpus "${GPUS:-2}" ${STEPS:+--steps "$STEPS"} ${SMALL:+--small} \
    ${MATRICES:+--matrices "$MATRICES"} ${MORE:-}
echo "gpu_time: exit $?"
timeout 30 "$python" -m tools.results.time --show "$out" 2>&1 | tee "$out/table.md"
