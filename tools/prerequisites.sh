#!/bin/sh
# Install what a bare Debian or Ubuntu lacks to build cpufree: python3 (with venv), make, g++.
# Does nothing where they are there. Needs root only when something is missing.
set -eu

missing=""
have() { command -v "$1" >/dev/null 2>&1; }
have python3 || missing="$missing python3"
python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
have make || missing="$missing make"
have c++ || have g++ || have clang++ || missing="$missing g++"

if [ -z "$missing" ]; then
    exit 0
elif ! have apt-get; then
    echo "prerequisites: missing:$missing. Install them with your package manager." >&2
    exit 1
elif [ "$(id -u)" != 0 ]; then
    echo "prerequisites: missing:$missing. Run: sudo sh tools/prerequisites.sh" >&2
    exit 1
fi
echo "prerequisites: installing$missing"
apt-get -qq update
# shellcheck disable=SC2086  # a list of package names
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >/dev/null
