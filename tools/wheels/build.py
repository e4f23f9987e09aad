"""Make wheels of cpufree: for all versions of CPython and for two processors.

    python -m tools.wheels.build [--gpu] [--pythons 3.10,3.12] [--architectures x86_64,aarch64]

From the source distribution, into dist, or dist/gpu. CPython 3.10 and 3.11 have wheels of their
own; that of 3.12 serves all later versions. Those for aarch64 are compiled by Debian's cross
compiler (apt-get install g++-aarch64-linux-gnu). By default all are made that this machine can
make, and the others are named with the reason; what is asked for and cannot be made is an error.
auditwheel reads the versions of all symbols and names the oldest glibc that a wheel runs with.

--gpu: with the GPU engine, and with kernels of usual solves, which a wheel for this machine
compiles first (NVRTC; no GPU is needed).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tools.wheels.interpreters import ARCHITECTURES, STABLE, VERSIONS, found

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/wheel"
MOST_MB = {False: 8.0, True: 25.0}
"""What a wheel may take, without and with the GPU engine."""

GLIBC = (2, 34)
"""The newest glibc that wheels for others may need: that of RHEL 9, older than Ubuntu 22.04's."""

KERNELS = {False: "ALL", True: "ALL_CPU"}
"""Which kernels are built in (CPUFREE_KERNELS), without and with the GPU engine."""

CUDA_RUNTIME = ("nvidia-cuda-runtime>=13,<14", "nvidia-cuda-crt>=13,<14")


class CannotMakeError(Exception):
    """A wheel cannot be made on this machine; the text says what is missing."""


@dataclass(frozen=True)
class Target:
    """One wheel: for a version of CPython (and, from STABLE on, all later ones) and a processor."""

    version: str
    architecture: str
    gpu: bool

    @property
    def is_foreign(self) -> bool:
        """Whether it is for a processor that this machine has not."""
        return self.architecture != os.uname().machine

    def name(self) -> str:
        """Return what messages call it."""
        return f"cp{self.version.replace('.', '')} for {self.architecture}"


def main() -> int:
    """Make them; return the exit status."""
    given = _arguments()
    source = unpacked(source_distribution())
    if given.gpu:
        source = with_kernels(source)
    out = ROOT / "dist/gpu" if given.gpu else ROOT / "dist"
    made, missing = [], []
    for architecture in given.architectures or ARCHITECTURES:
        for version in given.pythons or versions():
            target = Target(version, architecture, given.gpu)
            try:
                made.append(repaired(raw_wheel(target, source), out))
            except CannotMakeError as error:
                missing.append(f"{target.name()}: {error}")
    wrong = report(made, given.gpu)
    for line in missing:
        print("wheels: not made:", line)
    asked_for = given.architectures or given.pythons
    return 1 if wrong or not made or (asked_for and missing) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    split = re.compile(r"[, ]+").split
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--pythons", type=split, metavar="LIST")
    parser.add_argument("--architectures", type=split, metavar="LIST")
    given = parser.parse_args()
    for name, known in (("pythons", VERSIONS), ("architectures", tuple(ARCHITECTURES))):
        if wrong := set(getattr(given, name) or ()) - set(known):
            parser.error(f"--{name} takes {', '.join(known)}, not {', '.join(sorted(wrong))}")
    return given


def versions() -> list[str]:
    """Return those that have wheels of their own."""
    return [one for one in VERSIONS if _number(one) <= _number(STABLE)]


def _number(version: str) -> int:
    return int(version.partition(".")[2])


def source_distribution() -> Path:
    """Make it; return its path."""
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", WORK, ROOT]
    for old in WORK.glob("*.tar.gz"):
        old.unlink()
    _run(command, "the source distribution", WORK / "sdist.log")
    return next(WORK.glob("*.tar.gz"))


def unpacked(distribution: Path) -> Path:
    """Unpack it; return the folder. Files that are as before keep their times, for later builds."""
    source = WORK / "source"
    with tarfile.open(distribution) as archive:
        names = set()
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is None:
                continue
            file = source / member.name.partition("/")[2]
            names.add(file)
            content = stream.read()
            if not file.exists() or file.read_bytes() != content:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(member.mode)
    for file in source.rglob("*"):
        if file.is_file() and file not in names and source / "build" not in file.parents:
            file.unlink()
    return source


def raw_wheel(target: Target, source: Path) -> Path:
    """Compile one; return it as it is before auditwheel has looked at it."""
    python = found(target.version)
    if python is None:
        raise CannotMakeError(f"python{target.version} was not found")
    env, foreign = dict(os.environ), dict[str, str]()
    folder = f"{target.architecture}{'-gpu' if target.gpu else ''}"
    defines = {"NATIVE": "OFF", "TESTS": "OFF", "CUDA": "OFF", "LIBFABRIC": "OFF"}
    defines["KERNELS"] = KERNELS[target.gpu]
    if target.gpu:
        home = cuda_runtime(target.architecture)
        defines |= {"CUDA": "ON", "CUDA_HOME": str(home)}
    options = [f"cmake.define.CPUFREE_{name}={value}" for name, value in defines.items()]
    # Nor is MPI: what one machine has, others have in other versions.
    options.append("cmake.define.CMAKE_DISABLE_FIND_PACKAGE_MPI=ON")
    if target.is_foreign:
        if target.architecture != "aarch64":
            raise CannotMakeError("there is no cross compiler for it here")
        if shutil.which("aarch64-linux-gnu-g++") is None:
            raise CannotMakeError("aarch64-linux-gnu-g++ was not found (g++-aarch64-linux-gnu)")
        toolchain = Path(__file__).with_name("aarch64.cmake")
        options.append(f"cmake.define.CMAKE_TOOLCHAIN_FILE={toolchain}")
        soabi = f"cpython-{target.version.replace('.', '')}-{target.architecture}-linux-gnu"
        foreign = {"_PYTHON_HOST_PLATFORM": f"linux-{target.architecture}"}
        foreign["SETUPTOOLS_EXT_SUFFIX"] = f".{soabi}.so"
    environment = WORK / "environments" / target.version
    script = [ROOT / "tools/setup_env.sh", "--build", environment]
    log = WORK / f"environment-{target.version}.log"
    _run(script, "the environment of the build", log, env | {"PYTHON": str(python)})
    # What does not depend on the version of Python is compiled once: they share a folder.
    raw = WORK / "raw" / folder / target.version
    shutil.rmtree(raw, ignore_errors=True)
    command = [str(environment / "bin/python"), "-m", "pip", "wheel", "-v", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(raw)]
    for option in (f"build-dir={source / 'build' / folder}", *options):
        command += ["--config-settings", option]
    print(f"wheels: compiling {target.name()}", flush=True)
    _run(
        [*command, str(source)],
        target.name(),
        WORK / f"{folder}-{target.version}.log",
        env | foreign,
    )
    return next(raw.glob("*.whl"))


def with_kernels(source: Path) -> Path:
    """Compile the kernels that wheels for GPUs come with; return the sources that have them."""
    own = f"3.{min(sys.version_info[1], _number(STABLE))}"
    package = WORK / "kernels"
    shutil.rmtree(package, ignore_errors=True)
    try:
        wheel = raw_wheel(Target(own, os.uname().machine, gpu=True), source)
    except CannotMakeError as error:
        raise SystemExit(f"wheels: error: nothing to compile kernels with: {error}") from error
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(package)
    print("wheels: compiling kernels for GPUs", flush=True)
    command = [sys.executable, ROOT / "tools/ship_kernels.py", "--package", package]
    _run(command, "the kernels", WORK / "kernels.log")
    return unpacked(source_distribution())


def cuda_runtime(architecture: str) -> Path:
    """Return the folder of CUDA's headers and static runtime for a processor, from its wheels."""
    place = WORK / f"cuda-{architecture}"
    home = place / "nvidia/cu13"
    if not home.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary=:all:"]
        command += [f"--platform=manylinux_2_17_{architecture}", f"--target={place}"]
        _run([*command, *CUDA_RUNTIME], "CUDA's runtime", WORK / "cuda.log")
    return home


def repaired(raw: Path, out: Path) -> Path:
    """Have auditwheel check and name a wheel; return it in `out`."""
    fresh = raw.parent / "repaired"
    command = [sys.executable, "-m", "auditwheel", "repair"]
    # The driver and NVSHMEM belong to the machine: they are loaded where they are found.
    for library in ("libcuda.so.1", "libnvshmem_host.so.3"):
        command += ["--exclude", library]
    _run([*command, "--wheel-dir", str(fresh), str(raw)], raw.name, raw.parent / "auditwheel.log")
    wheel = next(fresh.glob("*.whl"))
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, out / wheel.name))


def report(made: list[Path], gpu: bool) -> bool:
    """Print a table of wheels; return whether one is too large, or needs too new a system."""
    wrong = False
    for wheel in made:
        mb = wheel.stat().st_size / 1e6
        glibc = oldest_glibc(wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            unpacked_mb = sum(one.file_size for one in archive.infolist()) / 1e6
        print(
            f"wheels: {wheel.relative_to(ROOT)}: {mb:.1f} MB, unpacked {unpacked_mb:.1f} MB, "
            f"glibc {glibc[0]}.{glibc[1]} or newer"
        )
        if mb > MOST_MB[gpu]:
            print(f"wheels: error: more than {MOST_MB[gpu]:.0f} MB")
            wrong = True
        if glibc > GLIBC:
            print(
                f"wheels: note: wheels for others are to run with glibc {GLIBC[0]}.{GLIBC[1]}: "
                "build them on Debian 12"
            )
    return wrong


def oldest_glibc(name: str) -> tuple[int, int]:
    """Return the version of glibc in the tag of a wheel's name: 2.34 of manylinux_2_34_x86_64."""
    versions = re.findall(r"manylinux_(\d+)_(\d+)_", name)
    if not versions:
        raise SystemExit(f"wheels: error: auditwheel has given {name} no tag of manylinux")
    return min((int(major), int(minor)) for major, minor in versions)


def _run(command: list[object], what: str, log: Path, env: dict[str, str] | None = None) -> None:
    """Run a command whose output goes to a file; end with its last lines where it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        words = [str(word) for word in command]
        status = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, env=env).returncode
    if status:
        lines = log.read_text(errors="replace").splitlines()[-60:]
        raise SystemExit("\n".join([*lines, f"wheels: error: {what} failed, see {log}"]))


if __name__ == "__main__":
    sys.exit(main())
