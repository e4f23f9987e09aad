#!/usr/bin/env python3
"""Compile kernels for AMD's GPUs, and check their machine code. No such GPU is needed.

    python tools/check_hip.py [--quick] [--only REGEX] [--jobs N] [--skip]

Debian's packages of clang 19 and ROCm's device libraries are unpacked into build/hip (58 MB,
seconds). For gfx90a (MI200) and gfx942 (MI300) each kernel is compiled, its registers, spills and
memory are bounded by the notes of its code, and its instructions are checked: what goes to other
GPUs passes caches, and nothing writes a whole cache back for them. --quick: the verbs by which GPUs
speak to one another, and a few kernels. Host code, the engine for these GPUs, is built with HIP's
headers, and its tests run on a stand-in of HIP's runtime (tests/hip). --skip: where packages cannot
be had, that is said, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]
from tools.hip.code import instructions_of, kernels_of  # noqa: E402
from tools.hip.compiler import FOLDER, Compiler, NotThereError  # noqa: E402
from tools.hip.host import build_engine, test_engine  # noqa: E402
from tools.hip.verbs import VERBS, Verb  # noqa: E402

ARCHITECTURES = ("gfx90a", "gfx942")
SHOWN = (
    *("vgpr_count", "sgpr_count", "sgpr_spill_count"),
    *("private_segment_fixed_size", "group_segment_fixed_size"),
)
QUICK = r"solvers-prcg-jacobi$|vectors-double|stencils-wavefront-2d-double"


def texts_of(folder: Path) -> dict[str, str]:
    """Return the texts of kernels, by name: of C++ and of the compiler of programs."""
    build = ROOT / "build/python"
    subprocess.run(
        ["cmake", "--build", str(build), "--target", "kernel_texts"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([str(build / "tests/cpp/kernel_texts"), str(folder)], check=True)
    from tools.hip.programs import program_texts

    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.cu"))}
    return texts | program_texts()


def check(
    compiler: Compiler, name: str, text: str, architecture: str, verb: Verb | None
) -> tuple[str, list[str]]:
    """Compile one text, and return a line about it and what is wrong with it."""
    begin = time.perf_counter()
    folder = FOLDER / architecture
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / f"{name}.co"
    try:
        compiler.compile(text, architecture, code, exact=name.startswith("programs-"))
    except RuntimeError as error:
        return f"{name:36} does not compile", [f"{architecture} {name}: {error}"]
    instructions = instructions_of(compiler, code, architecture)
    kernels = kernels_of(compiler, code)
    if verb is not None:
        faults = verb.faults(instructions)
    else:
        faults = instructions.faults() + [fault for one in kernels for fault in one.faults()]
        faults += [] if kernels else ["no kernel"]
    most = {key: max((one.numbers[key] for one in kernels), default=0) for key in SHOWN}
    inside = instructions.count(r"buffer_(wbl2|inv)")
    line = (
        f"{name:36} {architecture}  {most['vgpr_count']:3} vector registers, "
        f"{most['sgpr_count']:3} scalar ({most['sgpr_spill_count']} in lanes), "
        f"{most['private_segment_fixed_size']} and {most['group_segment_fixed_size']} bytes of a "
        f"thread and a block, {inside} for a whole cache; {time.perf_counter() - begin:.1f} s"
    )
    return line, [f"{architecture} {name}: {fault}" for fault in faults]


def jobs_of(
    given: argparse.Namespace, compiler: Compiler
) -> list[tuple[str, str, str, Verb | None]]:
    """Return what is to be compiled: name, text, architecture, and verb."""
    texts = texts_of(compiler.folder / "texts")
    wanted = QUICK if given.quick else given.only
    chosen = [(name, text, None) for name, text in texts.items() if re.search(wanted, name)]
    verbs = [(f"verb-{verb.name}", verb.text, verb) for verb in VERBS]
    if given.only:
        verbs = [one for one in verbs if re.search(given.only, one[0])]
    return [
        (name, text, architecture, verb)
        for name, text, verb in [*verbs, *chosen]
        for architecture in ARCHITECTURES
    ]


def main() -> int:
    """Check all, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--skip", action="store_true")
    given = parser.parse_args()
    begin = time.perf_counter()
    compiler = Compiler()
    try:
        compiler.fetch()
    except NotThereError as error:
        print(f"hip: {'skipped' if given.skip else 'error'}: packages cannot be had: {error}")
        return 0 if given.skip else 1
    fetched = time.perf_counter() - begin
    faults: list[str] = []
    jobs = jobs_of(given, compiler)
    with ThreadPoolExecutor(given.jobs) as pool:
        for line, wrong in pool.map(lambda one: check(compiler, *one), jobs):
            print(line, flush=True)
            faults += wrong
    hosted = not given.only or "engine" in given.only
    if hosted:
        faults += build_engine(compiler, given.jobs) or test_engine(compiler)
    for fault in faults:
        print(f"hip: error: {fault}", file=sys.stderr)
    print(
        f"hip: {len(jobs)} kernels for {' and '.join(ARCHITECTURES)} compiled and checked, "
        f"{'the engine run on a stand-in of HIP, ' if hosted else ''}"
        f"{len(faults)} faults; packages {fetched:.0f} s, all {time.perf_counter() - begin:.0f} s"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
