#!/usr/bin/env bash
# Build and run the C++ tests of one CMake preset. Usage:
# tools/test_cpp.sh cpu|thorough|tsan|thorough-tsan|asan|aarch64 [JOBS] [--room FOLDER] [OPTION OF CTEST]..., such as -E fibers.
# --room: only what is in one folder of tests/cpp is built and run.
# PRECOMPILE=OFF: standard headers are compiled with each file, as a cache of compilations wants it.
# aarch64: protocols, formats and solvers on threads, compiled for 64-bit Arm, under qemu-user.
# thorough: as cpu, with all random schedules and cases, of which the others take a part;
# thorough-tsan: as tsan, with all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=${2:-2}
options=("${@:3}")
target=all_tests
[ "${3:-}" != --room ] || { target=room-$4 options=(-L "^$4\$" "${@:5}"); }
thorough=OFF
case $preset in
    thorough) preset=cpu thorough=ON ;;
    thorough-tsan) preset=tsan thorough=ON ;;
esac

case $preset in
    tsan) flag=-fsanitize=thread ;;
    asan) flag=-fsanitize=address,undefined ;;
    *) flag= ;;
esac
if [ "$preset" = aarch64 ]; then
    for tool in aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64:qemu-user; do
        command -v "${tool%:*}" >/dev/null ||
            { echo "test_cpp: error: ${tool%:*} was not found: apt-get install ${tool#*:}" >&2; exit 1; }
    done
fi
# A sanitizer needs its runtime library, which not every machine has: try, and say so if not.
if [ -n "$flag" ]; then
    probe=$(mktemp -d)
    trap 'rm -rf "$probe"' EXIT
    echo 'int main() { return 0; }' >"$probe/probe.cpp"
    if ! "${CXX:-c++}" "$flag" "$probe/probe.cpp" -o "$probe/probe" 2>/dev/null || ! "$probe/probe"
    then
        echo "test_cpp: skipped: this compiler and machine cannot run programs with $flag"
        exit 0
    fi
fi

# Without a sanitizer, tests share the build folder of the package, and what has been compiled for it.
# Not where that has CUDA: tests of GPU code run on a stand-in.
dir=build/$preset
package=build/python
options_of_build=(-DCPUFREE_THOROUGH_TESTS="$thorough" -DCPUFREE_PRECOMPILE="${PRECOMPILE:-ON}")
configure=(cmake --preset "$preset" "${options_of_build[@]}")
if [ -z "$flag" ] && [ "$preset" != aarch64 ] && grep -qs "^CPUFREE_HAS_GPU_ENGINE:INTERNAL=OFF" "$package/CMakeCache.txt"; then
    dir=$package
    configure=(cmake "$package" "${options_of_build[@]}")
fi
log=build/$preset-configure.log
mkdir -p build
"${configure[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
grep -o "NVRTC: not found.*" "$log" || true  # what is not tested
cmake --build "$dir" -j "$jobs" --target "$target"
ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$jobs" "${options[@]}"
