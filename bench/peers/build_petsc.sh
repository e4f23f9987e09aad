#!/usr/bin/env bash
# Build PETSc and petsc4py from PyPI's source packages into DIR, for petsc_worker.py.
# Usage: bench/peers/build_petsc.sh [OPTIONS] DIR. Run again to go on where it stopped.
#
#   --python PY         Python >= 3.10 of the version that is to use it (default python3)
#   --mpi system|wheel  the mpicc on PATH, or Open MPI from PyPI (default: mpicc where there is one)
#   --cuda yes|no|auto  with GPUs; auto (default): where nvcc is found. No GPU is needed to build
#   --cuda-arch N       architecture of the GPUs (default 90)
#   --march ARCH        processor (default native; x86-64-v3 for other machines)
#   --jobs N            default: all cores
#   --limit SECONDS     of the longest step (default 7200)
#   --pack FILE.tar.xz  then also pack what is needed to run, stripped, to unpack anywhere
#
# DIR holds petsc, python (petsc4py and mpi4py), mpi (if from PyPI), env.sh to source before use, and
# src, which may be deleted. Needs gcc, g++, make, BLAS and LAPACK, and a network connection.
set -euo pipefail

version=3.26.1
openmpi=5.0.11
mpi4py=4.1.2

say() { echo "build_petsc: $*"; }
fail() { echo "build_petsc: error: $*" >&2; exit 1; }
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | grep -v '^set'; }

python=python3 mpi=auto cuda=auto arch=90 march=native jobs=$(nproc) limit=7200 pack='' dir=''
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --python | --mpi | --cuda | --cuda-arch | --march | --jobs | --limit | --pack)
            [ $# -gt 1 ] || fail "$1 needs a value"
            name=${1#--} && name=${name#cuda-} && printf -v "$name" %s "$2" && shift 2 ;;
        -*) fail "unknown option $1; --help lists them" ;;
        *) [ -z "$dir" ] || fail "one folder, not '$dir' and '$1'"; dir=$1; shift ;;
    esac
done
[ -n "$dir" ] || fail "where to? bench/peers/build_petsc.sh DIR; --help says more"
[[ $jobs =~ ^[1-9][0-9]*$ && $limit =~ ^[1-9][0-9]*$ && $arch =~ ^[1-9][0-9]*$ ]] ||
    fail "--jobs, --limit and --cuda-arch take whole numbers from 1"
[[ $cuda =~ ^(yes|no|auto)$ ]] || fail "--cuda takes yes, no or auto, not '$cuda'"
[[ $mpi =~ ^(system|wheel|auto)$ ]] || fail "--mpi takes system or wheel, not '$mpi'"
dir=$(realpath -m "$dir")
[[ $dir =~ ^[A-Za-z0-9_./+-]+$ ]] || fail "PETSc builds in no folder whose name has blanks: $dir"
[ -z "$pack" ] || pack=$(realpath -m "$pack")
source=$dir/src/petsc-$version
export PETSC_DIR=$source PETSC_ARCH=arch-cpufree
unset PYTHONPATH MAKEFLAGS PETSC_OPTIONS

step() { # step NAME COMMAND...: run within the limit, its output in src/NAME.log
    local name=$1 begin=$SECONDS status=0
    shift
    say "$name (log: $dir/src/$name.log)"
    timeout "$limit" "$@" >"$dir/src/$name.log" 2>&1 </dev/null &
    wait $! || status=$?
    [ $status = 0 ] && say "$name: $((SECONDS - begin)) s" && return
    tail -n 25 "$dir/src/$name.log" >&2
    [ $status != 124 ] || fail "$name took more than $limit s; run again to go on, or raise --limit"
    fail "$name failed with status $status (above: the end of $dir/src/$name.log)"
}
stop() { # whatever runs, also where its number is not known yet; timeout passes it on
    local left
    left=$(jobs -p)
    # shellcheck disable=SC2086  # numbers
    [ -z "$left" ] || kill $left
}
trap stop EXIT
trap 'exit 130' INT TERM HUP
with_pip() { "$python" -m pip --disable-pip-version-check "$@"; }
export -f with_pip
export python

for tool in gcc g++ make; do
    command -v "$tool" >/dev/null || fail "'$tool' was not found. Debian: apt-get install g++ make"
done
python=$(realpath -s "$(command -v "$python" || echo "$python")") # links stay: they are venvs
[ -x "$python" ] || fail "there is no Python at $python; name one with --python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "needs Python >= 3.10"
with_pip --version >/dev/null 2>&1 || fail "$python has no pip; name another with --python"
mkdir -p "$dir/src" || fail "cannot write to $dir"
echo 'int main(void) { return 0; }' >"$dir/src/blas.c"
gcc "$dir/src/blas.c" -o "$dir/src/blas" -llapack -lblas 2>/dev/null ||
    fail "BLAS and LAPACK were not found. Debian: apt-get install libblas-dev liblapack-dev"

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
[ "$cuda" != yes ] || [ -n "$nvcc" ] || fail "--cuda yes, but nvcc is neither on PATH nor in /usr/local/cuda"
[ "$cuda" != auto ] || { [ -n "$nvcc" ] && cuda=yes || cuda=no; }
[ "$mpi" != auto ] || [ ! -d "$dir/mpi" ] || mpi=wheel # as it was begun
[ "$mpi" != auto ] || { command -v mpicc >/dev/null && mpi=system || mpi=wheel; }

if [ "$mpi" = wheel ]; then
    [ -x "$dir/mpi/bin/mpicc" ] ||
        step mpi bash -c "with_pip install --no-deps --ignore-installed --prefix '$dir/mpi' openmpi==$openmpi"
    export PATH=$dir/mpi/bin:$PATH
fi
command -v mpicc >/dev/null && command -v mpicxx >/dev/null ||
    fail "--mpi system, but mpicc or mpicxx is not on PATH; Debian: apt-get install libopenmpi-dev"

if [ ! -x "$source/configure" ]; then
    step fetch bash -c "with_pip download --no-deps --no-binary petsc -d '$dir/src' petsc==$version"
    tar xzf "$dir/src/petsc-$version.tar.gz" -C "$dir/src"
fi

options=(--prefix="$dir/petsc" --with-cc="$(command -v mpicc)" --with-cxx="$(command -v mpicxx)"
    --with-fc=0 --with-sowing=0 --with-c2html=0 --with-x=0 --with-ssl=0 --with-debugging=0
    --with-shared-libraries=1
    COPTFLAGS="-O3 -march=$march" CXXOPTFLAGS="-O3 -march=$march")
[ "$cuda" = no ] || options+=(--with-cuda=1 --with-cudac="$nvcc" --with-cuda-arch="$arch"
    --with-cuda-dir="$(dirname "$(dirname "$(realpath "$nvcc")")")" CUDAOPTFLAGS=-O3)
cd "$source"
if [ ! -e configured ]; then
    rm -rf "$PETSC_ARCH"
    step configure "$python" ./configure "${options[@]}"
    echo "${options[*]}" >configured
fi
[ "$(cat configured)" = "${options[*]}" ] ||
    fail "$dir was begun with other options; name another folder, or delete it first. Then:
$(cat configured)
now:
${options[*]}"
[ -e "$dir/petsc/lib/libpetsc.so" ] || {
    step make make -j "$jobs" MAKE_NP="$jobs" libs
    step install make install
}
version_of_python=$("$python" -c 'import sys; print("Python %d.%d" % sys.version_info[:2])')
if [ "$(cat "$dir/python/version" 2>/dev/null)" != "$version_of_python" ]; then
    # The interface does no arithmetic, and its one large file takes long with -O3.
    CFLAGS=-O1 PETSC_DIR=$dir/petsc PETSC_ARCH='' step petsc4py bash -c "with_pip install --upgrade \
        --no-deps --target '$dir/python' '$source/src/binding/petsc4py' mpi4py==$mpi4py"
    echo "$version_of_python" >"$dir/python/version"
fi

cat >"$dir/env.sh" <<'END'
# Source this in bash before petsc_worker.py: it finds PETSc and MPI wherever this folder lies.
_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PETSC_DIR=$_here/petsc PETSC_ARCH=
export PYTHONPATH=$_here/python${PYTHONPATH:+:$PYTHONPATH}
export LD_LIBRARY_PATH=$_here/petsc/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -d "$_here/mpi" ]; then
    export PATH=$_here/mpi/bin:$PATH LD_LIBRARY_PATH=$_here/mpi/lib:$LD_LIBRARY_PATH
fi
# Of last resort: CUDA where it usually is, and what was packed for machines that lack it.
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/cuda/lib64:$_here/lib
unset _here
END

# The driver's library is missing where there is no GPU; nothing of it is called here.
drivers=''
[ "$cuda" = no ] || ldconfig -p | grep -q 'libcuda\.so\.1' || {
    drivers=$dir/src/no_driver
    mkdir -p "$drivers"
    ln -sf "$(dirname "$(dirname "$(realpath "$nvcc")")")/lib64/stubs/libcuda.so" "$drivers/libcuda.so.1"
}
check() { # check ENV.SH: does it load?
    LD_LIBRARY_PATH=$drivers timeout 120 bash -c '. "$1"; "$2" -c "
from mpi4py import MPI
from petsc4py import PETSc
print(*PETSc.Sys.getVersion(), PETSc.Sys.hasExternalPackage(\"cuda\"), PETSc.__file__)"' _ "$1" "$python"
}
found=$(check "$dir/env.sh" 2>"$dir/src/check.log") || {
    cat "$dir/src/check.log" >&2
    grep -q numpy "$dir/src/check.log" && fail "petsc4py needs NumPy: $python -m pip install numpy"
    fail "petsc4py was built but does not load (above)"
}
say "PETSc, CUDA, module: $found"

pack() { # pack TREE: what is needed to run, stripped
    local tree=$1 library
    mkdir -p "$tree/petsc/lib" "$tree/lib"
    cp -P "$dir"/petsc/lib/libpetsc.so* "$tree/petsc/lib/"
    cp -r "$dir/python" "$dir/env.sh" "$tree/"
    [ "$mpi" = system ] || cp -r "$dir/mpi" "$tree/"
    # Small libraries come along for machines without them; theirs are found first.
    ldd "$dir/petsc/lib/libpetsc.so" | grep -oE '/[^ ]*lib(blas|lapack|gfortran|quadmath|nvtx3interop)\.so[^ ]*' |
        sort -u | while read -r library; do cp -L "$library" "$tree/lib/"; done
    rm -rf "$tree"/mpi/include "$tree"/mpi/share/man "$tree"/python/petsc4py/include
    find "$tree" -name __pycache__ -prune -exec rm -rf {} +
    find "$tree" -type f -name '*.so*' -exec strip --strip-unneeded {} + 2>/dev/null || true
}
if [ -n "$pack" ]; then
    tree=$dir/src/pack/petsc-peer
    rm -rf "$dir/src/pack"
    pack "$tree"
    check "$tree/env.sh" >/dev/null 2>"$dir/src/check.log" ||
        fail "what was packed does not load: $(cat "$dir/src/check.log")"
    mkdir -p "$(dirname "$pack")"
    step pack tar cJf "$pack" -C "$dir/src/pack" petsc-peer
    say "packed: $pack, $(du -h "$pack" | cut -f1); unpacked $(du -sh "$tree" | cut -f1)"
    say "there: tar xf $(basename "$pack"), then as below with petsc-peer/env.sh. It needs" \
        "$([ "$mpi" = wheel ] || echo "this MPI, ")$([ "$cuda" = no ] || echo "CUDA's libraries, ")" \
        "$version_of_python and NumPy"
fi
say "done. Use it with"
say "    . $dir/env.sh"
say "    mpirun -n 2 $python bench/peers/petsc_worker.py"
