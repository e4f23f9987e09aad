"""Install wheels as users do, each into an environment of its own, and solve there.

    python -m tools.wheels.tried [FOLDER]... [--pythons 3.10,3.14] [--architectures x86_64,aarch64]

Each wheel of the folders (default: dist) is tried with every version of CPython that it serves:
with those of this machine, and with Debian's for versions that it has not and for aarch64, which
runs under qemu-user (apt-get install qemu-user). Versions that neither has are named. Needs a
network, for what cpufree requires, and no GPU. Ends with status 1 where a wheel has failed.
"""

from __future__ import annotations

import argparse
import email
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pip
from packaging.requirements import Requirement

from tools.wheels.build import GLIBC
from tools.wheels.interpreters import ARCHITECTURES, STABLE, VERSIONS, found, from_debian

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/wheel/tried"
TRIAL = Path(__file__).with_name("trial.py")
LIMIT = 1800  # seconds for one installation or one trial: under qemu-user both take minutes
RUNS = 3
"""How often a trial is run where it is timed: the least is what the machine can do."""

# Processors that qemu-user stands in for, with the level of kernels that each is to get: without
# SVE, with vectors of 128 bits as Grace has them, and with longer ones.
EMULATED = {"cortex-a72": "neon", "max,sve-max-vq=1": "neon", "max,sve-max-vq=2": "sve"}


def main() -> int:
    """Try them; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    split = re.compile(r"[, ]+").split
    parser.add_argument("folders", type=Path, nargs="*", default=[ROOT / "dist"])
    parser.add_argument("--pythons", type=split, default=VERSIONS, metavar="LIST")
    parser.add_argument("--architectures", type=split, default=ARCHITECTURES, metavar="LIST")
    given = parser.parse_args()
    bits: dict[str, set[str]] = {}
    lines, failed, tried = [], [], 0
    chosen = itertools.product(given.folders, given.architectures, given.pythons)
    for folder, architecture, version in chosen:
        name = f"{folder.name}: CPython {version} on {architecture}"
        wheel = wheel_for(folder.resolve(), version, architecture)
        python = interpreter(version, architecture) if wheel else None
        if wheel is None or python is None:
            lines.append(f"{name}: not tried: no {'interpreter' if wheel else 'wheel'}")
            continue
        tried += 1
        try:
            said = trials(wheel, python, version, architecture)
            bits.setdefault(architecture, set()).update(one["bits"] for one in said)
            lines.append(f"{name}: {summary(said)}")
        except (subprocess.SubprocessError, AssertionError) as error:
            failed.append(name)
            lines.append(f"{name}: FAILED: {_reason(error)}")
        print(lines[-1], flush=True)
    print("\nwheels tried:", *lines, sep="\n  ")
    for architecture, digests in bits.items():
        if len(digests) != 1:
            failed.append(f"{architecture}: levels or versions of Python differ in their bits")
    for line in failed:
        print("tried: error:", line)
    return 1 if failed or not tried else 0


def wheel_for(folder: Path, version: str, architecture: str) -> Path | None:
    """Return the wheel of a folder that serves a version, its own before that of all."""
    tag = f"cp{version.replace('.', '')}"
    stable = f"cp{STABLE.replace('.', '')}-abi3"
    wheels = [*folder.glob(f"*-{tag}-{tag}-*{architecture}.whl")]
    if int(version.partition(".")[2]) >= int(STABLE.partition(".")[2]):
        wheels += folder.glob(f"*-{stable}-*{architecture}.whl")
    return wheels[0] if wheels else None


def interpreter(version: str, architecture: str) -> list[str] | None:
    """Return the command of an interpreter, None where there is none."""
    if architecture == os.uname().machine and (python := found(version)):
        return [str(python)]
    if architecture != os.uname().machine and shutil.which(f"qemu-{architecture}") is None:
        print(f"tried: qemu-{architecture} was not found (apt-get install qemu-user)")
        return None
    return from_debian(version, architecture)


def trials(wheel: Path, python: list[str], version: str, architecture: str) -> list[dict[str, Any]]:
    """Install a wheel and run the trial, once for each level of kernels and without METIS."""
    place = WORK / f"{version}-{architecture}"
    shutil.rmtree(place, ignore_errors=True)
    install(wheel, python, version, architecture, place)
    emulated = architecture != os.uname().machine
    said = []
    for processor, level in EMULATED.items() if emulated else [("", "")]:
        env = {"QEMU_CPU": processor} if processor else {}
        one = [_trial(python, place, env) for _ in range(1 if emulated else RUNS)]
        best = min(one, key=lambda run: run["import"] + run["first_solve"])
        assert level in ("", best["level"]), f"{processor} gets {best['level']}, not {level}"
        assert emulated or best["level"] == best["levels"][-1], best
        said.append(best)
        for lower in () if emulated else best["levels"][:-1]:
            said.append(_trial(python, place, {"CPUFREE_CPU_LEVEL": lower}))
    if said[0]["metis"]:
        for part in place.glob("*pymetis*"):
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        said.append(_trial(python, place, {}))
        assert not said[-1]["metis"]
    return said


def install(wheel: Path, python: list[str], version: str, architecture: str, place: Path) -> None:
    """Install a wheel, with what it requires, into a folder."""
    pip_folder = str(Path(pip.__file__).parent)
    words = [pip_folder, "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    words += ["--only-binary=:all:", "--no-compile", "--target", str(place)]
    if architecture == os.uname().machine:
        # By that interpreter: tags and requirements are judged by it.
        _run([*python, *words, str(wheel)], {})
        return
    # Under an emulator that takes long. pip knows tags of other processors, but judges requirements
    # by its own: they are judged here, and the wheel comes by itself.
    words += ["--implementation=cp", f"--python-version={version}"]
    words += [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
    tags = [f"manylinux_2_{minor}_{architecture}" for minor in range(17, GLIBC[1] + 1)]
    words += [f"--platform={tag}" for tag in (*tags, f"manylinux2014_{architecture}")]
    _run([sys.executable, *words, *requirements(wheel, version, architecture)], {})
    _run([sys.executable, *words, "--no-deps", str(wheel)], {})


def requirements(wheel: Path, version: str, architecture: str) -> list[str]:
    """Return what a wheel requires with a version of Python on a processor, extras left out."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    there = {"platform_machine": architecture, "python_version": version, "extra": ""}
    wanted = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    needed = [one for one in wanted if one.marker is None or one.marker.evaluate(there)]
    return [f"{one.name}{one.specifier}" for one in needed]


def _trial(python: list[str], place: Path, env: dict[str, str]) -> dict[str, Any]:
    """Run the trial with what is installed at a place, and nothing else; return what it says."""
    # -I: neither variables nor the user's packages. An empty folder: none of this source tree.
    program = f"import sys; sys.path.insert(0, {str(place)!r}); exec(open({str(TRIAL)!r}).read())"
    cores = {"OMP_NUM_THREADS": "2", "CPUFREE_KERNEL_CACHE": "off"}
    said: dict[str, Any] = json.loads(_run([*python, "-I", "-c", program], cores | env))
    assert Path(said["place"]).is_relative_to(place), said["place"]
    return said


def _run(command: list[str], env: dict[str, str]) -> str:
    """Run a command in a folder of its own; return what it prints."""
    empty = WORK / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    known = {key: value for key, value in os.environ.items() if not key.startswith("CPUFREE_")}
    done = subprocess.run(
        command, cwd=empty, env=known | env, capture_output=True, text=True, timeout=LIMIT
    )
    if done.returncode:
        raise subprocess.SubprocessError(f"{command[-1][:60]}...\n{done.stderr[-3000:]}")
    return done.stdout


def summary(said: list[dict[str, Any]]) -> str:
    """Return a line about the trials of one wheel."""
    first = said[0]
    levels = ", ".join(dict.fromkeys(one["level"] for one in said))
    metis = "with METIS and without" if first["metis"] else "without METIS"
    seconds = f"import {first['import']:.2f} s + first solve {first['first_solve']:.2f} s"
    gpus = f"; {first['gpus']}" if first["gpus"] else ""
    return f"{seconds}; kernels {levels}; {metis}; bits {first['bits'][:12]}{gpus}"


def _reason(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
