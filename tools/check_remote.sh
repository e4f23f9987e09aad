#!/usr/bin/env bash
# Compile what reads the headers of NVSHMEM and NCCL against releases of them, and link the device
# code with one solver's kernel. No GPU is needed.
# Usage: tools/check_remote.sh LIBRARY-VERSION..., such as nccl-2.32.3
# Wheels of pip's nvidia-LIBRARY-cu13 come from PyPI into build/LIBRARY-VERSION; where they cannot be
# had, that is said, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: tools/check_remote.sh nvshmem-3.8.0 nccl-2.32.3 ..." >&2; exit 2; }
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
# As cmake/remote.cmake has it, but quickly.
device=(-arch=sm_90 -std=c++20 -rdc=true -I. --expt-relaxed-constexpr -maxrregcount=128 -O0
    -Xptxas -O0)

fetch() { # fetch LIBRARY VERSION FOLDER: its headers and device library
    [ ! -e "$3/nvidia/$1/include" ] || return 0
    mkdir -p "$3"
    timeout 120 "$python" -m pip download -q --disable-pip-version-check --no-deps \
        --only-binary :all: --dest "$3" "nvidia-$1-cu13==$2" || return 1
    "$python" - "$3" <<'END'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in folder.glob("*.whl"):
    with zipfile.ZipFile(wheel) as files:
        wanted = [name for name in files.namelist() if "/include/" in name or name.endswith(".a")]
        files.extractall(folder, wanted)
    wheel.unlink()
END
}
compile() { # compile FOLDER NAME SOURCE OPTION...: FOLDER/NAME.o
    "$nvcc" "${device[@]}" "${@:4}" -c "$3" -o "$1/$2.o"
}
link() { # link FOLDER NAME OBJECT...: the machine code of these
    "$nvcc" -arch=sm_90 -dlink -fatbin "${@:3}" -o "$1/$2.fatbin"
}
syntax() { # syntax INCLUDE SOURCE...: host code
    local source
    for source in "${@:2}"; do
        "${CXX:-c++}" -std=c++20 -fsyntax-only -DCPUFREE_NCCL_HEADERS -I. -Icpufree/gpu/cuda \
            -isystem "$1" -isystem "$cuda" "$source"
    done
}
check_nvshmem() { # check_nvshmem FOLDER HOME
    local include=(-isystem "$2/include")
    compile "$1" calls cpufree/engines/remote/nvshmem/calls.cu "${include[@]}"
    compile "$1" probe cpufree/probes/nvshmem.cu "${include[@]}"
    link "$1" probe "$1/probe.o" "$2/lib/libnvshmem_device.a"
    link "$1" kernels "$1/calls.o" "${kernels[@]}" "$2/lib/libnvshmem_device.a"
    syntax "$2/include" cpufree/engines/remote/nvshmem/library.cpp \
        cpufree/baselines/nvshmem_library.cpp
}
# -I: nvcc's own folder, which may have another NCCL, comes before -isystem.
check_nccl() { # check_nccl FOLDER HOME
    compile "$1" calls cpufree/engines/remote/nccl/calls.cu "-I$2/include"
    link "$1" kernels "$1/calls.o" "${kernels[@]}"
    syntax "$2/include" cpufree/engines/remote/nccl/library.cpp
}
# What a release has that others lack.
with_nvshmem() {
    grep -qs "^#define NVSHMEM_CFT_HANDLES_SUPPORT" "$1/non_abi/nvshmem_build_options.h" &&
        echo ", with counted signals" || echo ", without counted signals"
}
with_nccl() {
    grep -qs "ncclGin_WeakVASignalAdd" "$1/nccl_device/gin.h" &&
        echo ", with puts over a network" || echo ", within nodes alone"
}
check() { # check LIBRARY-VERSION
    local library=${1%%-*} dir=build/$1
    fetch "$library" "${1#*-}" "$dir" ||
        { echo "check_remote: $1 skipped: PyPI has not given it"; return 0; }
    "check_$library" "$dir" "$dir/nvidia/$library"
    echo "check_remote: $1 compiles and links$("with_$library" "$dir/nvidia/$library/include")"
}

# Kernels know no library: they are compiled once.
own=build/remote kernels=()
mkdir -p "$own"
rm -f "$own"/*.o
sed -e 's/@method@/cg/; s/@pc@/none/; s/@type@/double/g; s/@algorithm@/ConjugateGradient/' \
    -e 's/@preconditioner@/Identity/' cpufree/solvers/gpu/kernels/remote_kernel.cu.in >"$own/cg.cu"
for source in "$own/cg.cu" cpufree/probes/gpu/remote/litmus.cu tests/cpp/device/traced_remote.cu; do
    name=$(basename "$source" .cu)
    compile "$own" "$name" "$source" &
    kernels+=("$own/$name.o")
done
wait

workers=()
for one in "$@"; do
    check "$one" &
    workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker"; done
