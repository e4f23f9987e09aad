#!/usr/bin/env bash
# Compile what reads NVSHMEM's headers against releases of it, and link the device code with their
# libraries. No GPU is needed. Usage: tools/check_nvshmem.sh VERSION...
# Wheels of nvidia-nvshmem-cu13 come from PyPI into build/nvshmem-VERSION; where they cannot be had,
# that is said, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: tools/check_nvshmem.sh VERSION..., such as 3.4.5 3.8.0" >&2; exit 2; }
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}

fetch() { # fetch VERSION FOLDER
    [ ! -e "$2/nvidia/nvshmem" ] || return 0
    timeout 60 "$python" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: \
        --target "$2" "nvidia-nvshmem-cu13==$1"
}
check() { # check VERSION
    local dir=build/nvshmem-$1 home
    fetch "$1" "$dir" || { echo "check_nvshmem: $1 skipped: PyPI has not given it"; return 0; }
    home=$dir/nvidia/nvshmem
    local device=(-arch=sm_90 -std=c++20 -rdc=true -I. -isystem "$home/include"
        --expt-relaxed-constexpr -O0 -Xptxas -O0)
    "$nvcc" "${device[@]}" -c cpufree/engines/nvshmem/calls.cu -o "$dir/calls.o"
    "$nvcc" -arch=sm_90 -dlink -fatbin "$dir/calls.o" "$home/lib/libnvshmem_device.a" -o "$dir/calls.fatbin"
    "$nvcc" "${device[@]}" -c cpufree/probes/nvshmem.cu -o "$dir/probe.o"
    "$nvcc" -arch=sm_90 -dlink -fatbin "$dir/probe.o" "$home/lib/libnvshmem_device.a" -o "$dir/probe.fatbin"
    "$nvcc" "${device[@]}" -c tests/cpp/device/traced_nvshmem.cu -o "$dir/traced.o"
    local source
    for source in cpufree/engines/nvshmem/library.cpp cpufree/baselines/nvshmem_library.cpp; do
        "${CXX:-c++}" -std=c++20 -fsyntax-only -I. -Icpufree/gpu/cuda -include nvshmem_host.h \
            -isystem "$home/include" -isystem "$cuda" "$source"
    done
    echo "check_nvshmem: $1 compiles and links"
}

workers=()
for version in "$@"; do
    check "$version" &
    workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker"; done
