#!/usr/bin/env bash
# Build the part of cpufree that `cpufree bench triggered --gpus` needs, without the kernels of solvers
# and stencils, into build/triggered/python: minutes, where all of build_gpu.sh takes much longer.
# Usage: tools/carry_triggered.sh PYTHON [JOBS]   (PYTHON >= 3.12; needs nvcc, no GPU)
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "$1")
jobs=${2:-$(nproc)}
export PATH="$PWD/.venv/bin:$PATH"
nanobind=$(python -c 'import nanobind; print(nanobind.cmake_dir())')

build() {  # folder, CUDA, targets
    local dir=$1 cuda=$2
    shift 2
    mkdir -p "$dir"
    cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCPUFREE_CUDA="$cuda" \
        -DCPUFREE_PYTHON=ON -DCPUFREE_TESTS=OFF -DCPUFREE_WERROR=OFF \
        -DPython_EXECUTABLE="$python" -Dnanobind_DIR="$nanobind" >"$dir/configure.log" 2>&1 ||
        { cat "$dir/configure.log" >&2; exit 1; }
    cmake --build "$dir" -j "$jobs" --target "$@"
}
build build/gpu ON _triggered_gpu
build build/triggered/core OFF _core _triggered

to=build/triggered/python
rm -rf "$to"
mkdir -p "$to"
cp -r python/cpufree "$to/"
find "$to" \( -name __pycache__ -o -name '_*.so' \) -exec rm -rf {} +
cp build/triggered/core/_*.so build/gpu/_triggered_gpu*.so "$to/cpufree/"
strip "$to"/cpufree/_*.so
du -sh "$to"
