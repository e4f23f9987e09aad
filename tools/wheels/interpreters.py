"""Interpreters of CPython: those of this machine, and those of Debian for another processor."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
STABLE = "3.12"
"""From this version on one wheel serves all (wheel.py-api of pyproject.toml)."""

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Processors that wheels are made for, and what Debian calls them."""

ROOTS = Path(__file__).resolve().parents[2] / "build/wheel/interpreters"


@cache
def found(version: str) -> Path | None:
    """Return an interpreter of this machine, on PATH, of pyenv or of uv; None where it has none."""
    pyenv = Path.home() / ".pyenv/versions"
    candidates = [f"python{version}", *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    if uv := shutil.which("uv"):
        asked = subprocess.run([uv, "python", "find", version], capture_output=True, text=True)
        candidates += asked.stdout.split()
    for candidate in candidates:
        # Of a virtual environment the interpreter that it is made of: no packages of others.
        program = "import sys; print('%d.%d' % sys.version_info[:2], sys._base_executable)"
        try:
            said = subprocess.run([candidate, "-c", program], capture_output=True, text=True)
        except OSError:
            continue
        if said.stdout.split()[:1] == [version]:
            return Path(said.stdout.split(maxsplit=1)[1].strip())
    return None


def from_debian(version: str, architecture: str) -> list[str] | None:
    """Return the command of an interpreter of Debian in a folder of its own; None if it has none.

    It starts through that folder's own loader, or, for another processor, through qemu-user.
    """
    root = ROOTS / f"{version}-{architecture}"
    script = Path(__file__).with_name("debian_python.sh")
    done = subprocess.run([script, version, ARCHITECTURES[architecture], root])
    if done.returncode == 3:
        return None
    done.check_returncode()
    python = str(root / f"usr/bin/python{version}")
    if architecture != "x86_64":
        return [f"qemu-{architecture}", "-L", str(root), python]
    libraries = ":".join(str(root / f"{usr}lib/x86_64-linux-gnu") for usr in ("", "usr/"))
    return [str(root / "lib64/ld-linux-x86-64.so.2"), "--library-path", libraries, python]
