"""Kernels that tests compile: kept in the build folder, quickly, with a precompiled header."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from paths import ROOT

from cpufree.compiler.build import FLAGS
from cpufree.cpu_kernels import ROOMS, SHARED
from cpufree.env import BuildEnv

FOLDER = ROOT / "build/kernels-of-tests"
# What the texts of programs begin with: reading it takes 1.4 of the 2.4 s that one takes.
HEAD = """#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/programs/runtime.hpp"
"""
# Kernels of tests compute little: -O1 takes half the time to compile them, and gives the same bits.
# Tests of what optimisation may break take the user's compiler (the fixture `users_compiler`).
QUICK = """#!/bin/sh
for word do
    shift
    [ "$word" = -O3 ] && word=-O1
    set -- "$@" "$word"
done
exec {compiler} "$@"
"""
NAMED = os.environ.get("CPUFREE_CXX")
"""What the environment named before `prepare`."""


def prepare() -> None:
    """Set what the tests of this process, and those that they start, compile with, and where to.

    A compiler or a folder that the environment names stays.
    """
    os.environ.setdefault("CPUFREE_KERNEL_CACHE", str(FOLDER))
    if "CPUFREE_CXX" not in os.environ:
        compiler = quick(BuildEnv.read().compiler)
        head = precompiled((compiler,))
        os.environ["CPUFREE_CXX"] = f"{compiler} -include {head}" if head else compiler


def quick(compiler: tuple[str, ...]) -> str:
    """Return a program that compiles as a compiler does, but for -O3, which it takes as -O1."""
    text = QUICK.format(compiler=shlex.join(compiler))
    program = FOLDER / f"quick-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not program.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=FOLDER, delete=False) as part:
            part.write(text)
        Path(part.name).chmod(0o755)
        Path(part.name).rename(program)  # whole, whichever of several processes makes it
    return str(program)


def precompiled(compiler: tuple[str, ...]) -> Path | None:
    """Return a header that this compiler has compiled before; None where it cannot.

    With other flags than those of programs a compiler takes the header's text.
    """
    files = [file for room in ROOMS for file in sorted((ROOT / "cpufree" / room).rglob("*.hpp"))]
    key = hashlib.sha256(" ".join((*compiler, *FLAGS)).encode())
    for file in files:
        key.update(file.read_bytes())
    head = FOLDER / key.hexdigest()[:16] / "head.hpp"
    head.parent.mkdir(parents=True, exist_ok=True)
    with (head.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes of tests one compiles it
        made = head.with_name("head.hpp.gch")
        if made.exists():
            return head
        head.write_text(HEAD)
        flags = [flag for flag in (*SHARED, *FLAGS) if flag != "-shared"]
        part = head.with_name("part")
        command = [*compiler, *flags, f"-I{ROOT}", "-x", "c++-header", str(head), "-o", str(part)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=600)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode:
            return None
        part.rename(made)
        return head
