#!/usr/bin/env bash
# Build what runs on GPUs into build/gpu: the programs of tests/cuda and the
# Python package with the extension, in build/gpu/python (put that on PYTHONPATH to use it).
# Usage: [KERNELS=USUAL] tools/build_gpu.sh [PYTHON] [JOBS]
#
# KERNELS=USUAL: a build without nvcc, whose kernels are compiled when they are first used; the
# package alone, into build/gpu-usual. It needs the runtime of CUDA: the toolkit's, or that of pip's
# nvidia-cuda-runtime and nvidia-cuda-crt.
#
# PYTHON is the interpreter to build the extension for; from 3.12 on it serves all later versions
# too. It needs no packages: nanobind is taken from .venv where it is there. Needs nvcc (but see above),
# no GPU, and leaves .venv as it is. The result runs on any x86-64-v2 processor.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${1:-python3}" || echo "${1:-python3}")  # before .venv is on PATH
jobs=${2:-$(nproc 2>/dev/null || echo 2)}
kernels=${KERNELS:-ALL}
case $kernels in
    ALL) dir=build/gpu ;;
    USUAL) dir=build/gpu-usual ;;
    *) echo "build_gpu: error: KERNELS is '$kernels'; use ALL or USUAL" >&2; exit 1 ;;
esac

[ -d .venv/bin ] && export PATH="$PWD/.venv/bin:$PATH"
fail() { echo "build_gpu: error: $*" >&2; exit 1; }
command -v "$python" >/dev/null || fail "'$python' was not found: name a Python >= 3.10"
helper=$python
[ -x .venv/bin/python ] && helper=.venv/bin/python
nanobind=$("$helper" -c 'import nanobind; print(nanobind.cmake_dir())' 2>/dev/null) ||
    fail "nanobind was not found by $helper: run make install first, or pip install nanobind"
# home_of PACKAGE FOLDER: the folder that is given, or the one of NVIDIA's wheel, where there is one.
home_of() {
    local home=$2 one
    for one in "$helper" "$python"; do
        [ -n "$home" ] || home=$("$one" -c \
            "import nvidia.$1 as m; print(list(m.__path__)[0])" 2>/dev/null || true)
    done
    echo "$home"
}
# For kernels of GPUs in several nodes.
nvshmem=$(home_of nvshmem "${NVSHMEM_HOME:-}")
nccl=$(home_of nccl "${NCCL_HOME:-}")
cuda=$(home_of cu13 "${CUDA_HOME:-}")
mkdir -p "$dir"
cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCPUFREE_CUDA=ON -DCPUFREE_PYTHON=ON -DCPUFREE_TESTS=ON -DCPUFREE_WERROR=OFF -DCPUFREE_NATIVE=OFF \
    -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$nanobind" \
    -DCPUFREE_NVSHMEM_HOME="$nvshmem" -DCPUFREE_NCCL_HOME="$nccl" -DCPUFREE_KERNELS="$kernels" -DCPUFREE_CUDA_HOME="$cuda" \
    >"$dir/configure.log" 2>&1 || { cat "$dir/configure.log" >&2; fail "cmake failed"; }
targets=(_core _triggered)
[ "$kernels" = USUAL ] || targets+=(_baselines _triggered_gpu cuda_check)
# Where there is MPI to build against.
ninja -C "$dir" -t query _baselines_mpi >/dev/null 2>&1 && targets+=(_baselines_mpi)
ninja -C "$dir" -t query _mpi_messages >/dev/null 2>&1 && targets+=(_mpi_messages)
# Where there is NVSHMEM or NCCL to link with.
ninja -C "$dir" -t query _remote >/dev/null 2>&1 && targets+=(_remote)
cmake --build "$dir" -j "$jobs" --target "${targets[@]}"

# Python files are copied, so that the package can be carried elsewhere as it is.
rm -rf "$dir/python"
mkdir -p "$dir/python"
cp -r python/cpufree "$dir/python/"
find "$dir/python" \( -name __pycache__ -o -name '_*.so' \) -exec rm -rf {} +
cp "$dir"/_*.so "$dir/python/cpufree/"
for code in "$dir"/_n*.fatbin; do [ ! -f "$code" ] || cp "$code" "$dir/python/cpufree/"; done
echo "build_gpu: PYTHONPATH=$dir/python; extensions:" $(cd "$dir/python/cpufree" && ls _*.so _*.fatbin 2>/dev/null)
