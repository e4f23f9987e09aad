#!/usr/bin/env bash
# Build the source distribution, look at what it holds, install it without a network into a fresh
# environment that has what it requires, and solve a system there, away from the source tree.
# Usage: tools/check_sdist.sh
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
fail() { echo "check_sdist: error: $*" >&2; exit 1; }
work=$(mktemp -d)
# Kernels made by `make kernels` are no part of the repository, but go along: as this file does.
stand_in=python/cpufree/kernels/0000000000000000.kernel
[ -d python/cpufree/kernels ] && made= || made=python/cpufree/kernels
mkdir -p python/cpufree/kernels
echo "stands in for a kernel" >"$stand_in"
trap 'rm -rf "$work" "$stand_in" $made' EXIT

"$python" -m build --sdist --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; fail "the source distribution cannot be built"; }
sdist=$(ls "$work"/dist/*.tar.gz)
expected="CHANGELOG.md CITATION.cff CMakeLists.txt LICENSE PKG-INFO README.md THIRD_PARTY_NOTICES.md cmake cpufree pyproject.toml python"
found=$(tar tzf "$sdist" | cut -d/ -f2 | sort -u | tr '\n' ' ' | sed 's/ $//')
[ "$found" = "$expected" ] || fail "it holds '$found', not '$expected'"
tar tzf "$sdist" | grep "/$stand_in$" >/dev/null || fail "it leaves out the kernels of python/cpufree/kernels"
if tar tzf "$sdist" | grep -E '__pycache__|\.(so|o|pyc)$'; then fail "it holds what was built"; fi

# What building and running need, as pyproject.toml lists it; the rest has no network. Where this system
# lets nobody have a network of their own, addresses that no one answers stand in for none.
PYTHON=$python tools/setup_env.sh "$work/venv" >"$work/environment.log" 2>&1 ||
    { cat "$work/environment.log" >&2; fail "no environment with what it requires"; }
offline=(env PIP_NO_INDEX=1 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9)
unshare -rn true 2>/dev/null && offline=(unshare -rn "${offline[@]}")
PATH=$work/venv/bin:$PATH "${offline[@]}" "$work/venv/bin/python" -m pip install -q \
    --disable-pip-version-check --no-build-isolation "$sdist" || fail "pip could not install it without a network"
cd "$work"
# The folder of this script's project must not be found by accident: nothing but the environment.
env -u PYTHONPATH venv/bin/cpufree solve "gen:poisson2d?nx=60,ny=40" --rtol 1e-10 --pes 2 >solve.log ||
    { cat solve.log >&2; fail "the installed program cannot solve"; }
env -u PYTHONPATH venv/bin/python - <<'PY'
import importlib.metadata, pathlib, sys
import cpufree
from cpufree.extension import load_core
core = load_core()
place = pathlib.Path(core.__file__).parent
assert place.is_relative_to(sys.prefix), place
assert list(place.glob("kernels/*.kernel")), "the wheel leaves out the kernels"
assert (place / "CITATION.cff").exists(), "the wheel leaves out CITATION.cff"
files = [file.name for file in importlib.metadata.files("cpufree")]
assert {"LICENSE", "THIRD_PARTY_NOTICES.md"} <= set(files), "the wheel leaves out licence or notices"
print("check_sdist: version", cpufree.__version__, "in", sys.prefix)
print("check_sdist: CPU kernels for", *core.cpu_levels(), "- in use:", core.cpu_level())
print("check_sdist: extension modules:", *(f"{p.name} {p.stat().st_size // 1024} KiB" for p in sorted(place.glob("*.so"))))
PY
