#!/usr/bin/env bash
# Unpack an interpreter of Debian, with all that it needs, into a folder: for a version or a processor
# that this machine has none for. Nothing is installed, and no rights are needed.
#
# Usage: tools/wheels/debian_python.sh VERSION ARCHITECTURE DIR, such as 3.14 arm64 build/roots/3.14-arm64.
# Leaves an earlier DIR as it is. Status 3 where no release of Debian has that version.
set -euo pipefail
version=${1:?VERSION} architecture=${2:?ARCHITECTURE} dir=${3:?DIR}
[ ! -e "$dir/.complete" ] || exit 0
fail() { echo "debian_python: error: $*" >&2; exit "${status:-1}"; }
command -v apt-get >/dev/null || fail "this needs a Debian or Ubuntu: apt-get was not found"
# Releases in this order: the oldest that has the version needs least of its surroundings.
releases="bookworm trixie forky sid"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || fail "$keys was not found: apt-get install debian-archive-keyring"
# The mirror that this machine uses.
mirror=$(apt-get indextargets --format '$(SITE)' | grep -E '/debian/?$' | head -n 1) ||
    fail "apt knows no mirror of Debian"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
for release in $releases; do
    state=$(dirname "$dir")/apt-$architecture-$release  # lists are shared by all versions
    mkdir -p "$state"/{lists,cache/archives}/partial
    : >"$state/status"
    echo "deb [arch=$architecture signed-by=$keys] $mirror $release main" >"$state/sources"
    cat >"$state/conf" <<EOF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State::Lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Dir::Etc::SourceList "$state/sources";
Dir::Etc::SourceParts "/dev/null";
EOF
    export APT_CONFIG=$state/conf
    [ -e "$state/.updated" ] || { apt-get -qq update && touch "$state/.updated"; } ||
        fail "the packages of $release cannot be listed: is there a network?"
    apt-cache show "python$version" >/dev/null 2>&1 || continue
    apt-get -qq -y --no-install-recommends --download-only install "python$version" libstdc++6 >/dev/null ||
        fail "the packages of python$version for $architecture cannot be loaded"
    for package in "$state"/cache/archives/*.deb; do dpkg -x "$package" "$dir"; done
    # Where libraries lie in /usr alone (from trixie on), their interpreter is looked for in /lib.
    for name in lib lib64 bin; do
        [ -e "$dir/$name" ] || [ ! -e "$dir/usr/$name" ] || ln -s "usr/$name" "$dir/$name"
    done
    rm "$state"/cache/archives/*.deb
    touch "$dir/.complete"
    echo "debian_python: python$version for $architecture, of $release, in $dir"
    exit 0
done
status=3 fail "no release of Debian has python$version for $architecture (looked in $releases)"
