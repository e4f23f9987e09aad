#!/usr/bin/env bash
# Build the extension and install the package, editable, into the virtual environment DIR, and beside
# that install what it needs to run. KERNELS=ALL builds in all kernels (CMakeLists.txt), and what is
# built when it is first wanted otherwise.
# Usage: tools/build_package.sh DIR. Shows each step of the build; all output is in build/package.log.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${1:?usage: tools/build_package.sh DIR}
mkdir -p build
log=build/package.log

# The packages take disk and network, compiling takes the cores.
tools/setup_env.sh "$dir" >build/requirements.log 2>&1 &
packages=$!
trap 'kill "$packages" 2>/dev/null || true' EXIT

# Lines of ninja; those that CMake writes of itself are no news.
show() { grep --line-buffered -oE '\[[0-9]+/[0-9]+\] (Building|Linking|Generating).*' | sed -u 's/CMakeFiles.*dir\///'; }
kernels=${KERNELS:-USUAL}
targets=(-C build.targets=_core)
[ "$kernels" = USUAL ] || targets=()
TIMEFORMAT="build: %R s, of processors %U s"
time {
    "$dir/bin/python" -m pip install -v --disable-pip-version-check --no-deps --no-build-isolation \
        -C cmake.define.CPUFREE_KERNELS="$kernels" "${targets[@]}" -e . >"$log" 2>&1 &
    pip=$!
    tail -n +1 -F --pid="$pip" "$log" 2>/dev/null | show || true
    wait "$pip" || { tail -n 100 "$log" >&2; echo "build_package: error: see above" >&2; exit 1; }
}
wait "$packages" || { cat build/requirements.log >&2; exit 1; }
trap - EXIT
