#!/usr/bin/env bash
# Make the virtual environment DIR and install into it what building and running needs, and what
# the extras of pyproject.toml named besides need: test, dev. With --build, what building needs alone.
# Usage: tools/setup_env.sh [--build] DIR [EXTRA]... Run again at any time: what is there already is
# kept.
set -euo pipefail
cd "$(dirname "$0")/.."
lists=(requires dependencies build)
[ "${1:-}" != --build ] || { lists=(requires build); shift; }
dir=${1:?usage: tools/setup_env.sh [--build] DIR [EXTRA]...}
extras=("${@:2}")
python=${PYTHON:-python3}

say() { echo "setup_env: $*"; }
fail() { echo "setup_env: error: $*" >&2; exit 1; }

command -v "$python" >/dev/null ||
    fail "'$python' was not found. Install Python >= 3.10 (Debian: tools/prerequisites.sh)," \
         "or name another interpreter: PYTHON=/path/to/python3 make demo"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "cpufree needs Python >= 3.10, but '$python' is $("$python" --version 2>&1)." \
         "Name a newer one: PYTHON=/path/to/python3 make demo"

# Debian splits venv and ensurepip from python3: try what needs the fewest rights first.
with_venv() { "$python" -c 'import venv, ensurepip' 2>/dev/null && "$python" -m venv "$1"; }
with_virtualenv() {
    "$python" -m virtualenv --version >/dev/null 2>&1 && "$python" -m virtualenv -q "$1"
}
with_virtualenv_from_pip() {
    local target
    "$python" -m pip --version >/dev/null 2>&1 || return 1
    target=$(mktemp -d)
    # A directory of its own: the system's packages stay as they are.
    "$python" -m pip install -q --target "$target" virtualenv 2>/dev/null ||
        "$python" -m pip install -q --break-system-packages --target "$target" virtualenv
    PYTHONPATH=$target "$python" -m virtualenv -q "$1"
    rm -rf "$target"
}
with_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-venv
    "$python" -m venv "$1"
}

if ! "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    say "creating $dir"
    rm -rf "$dir"
    with_venv "$dir" || with_virtualenv "$dir" || with_virtualenv_from_pip "$dir" ||
        with_apt "$dir" ||
        fail "no way to create a virtual environment: this Python has neither venv nor pip." \
             "As root: apt-get install python3-venv. Then run the same command again."
fi

# The requirements are those of pyproject.toml, read from there.
requirements=$("$dir/bin/python" - "${lists[@]}" "${extras[@]}" <<'PY'
import ast, re, sys
text = open("pyproject.toml").read()
for key in sys.argv[1:]:
    found = re.search(rf"^{key} = (\[.*?\])$", text, re.M | re.S)
    print(*ast.literal_eval(found.group(1)), sep="\n")
PY
)
needed="what pyproject.toml requires"
[ "${lists[1]}" = dependencies ] || needed="the tools of the build"
say "installing $needed${extras[*]:+, and its extras ${extras[*]},} into $dir"
mapfile -t packages <<<"$requirements"
"$dir/bin/python" -m pip install -q --disable-pip-version-check "${packages[@]}" ||
    fail "pip could not install the requirements (see above). Is there a network connection?"
