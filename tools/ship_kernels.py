#!/usr/bin/env python3
"""Make the kernels that come with a package: of usual solves, for common GPUs. No GPU is needed.

    python tools/ship_kernels.py [--package FOLDER] [--out FOLDER] [--architectures sm_90,...]

--package is a build with CPUFREE_KERNELS=USUAL (default: of tools/build_gpu.sh). Kernels go to
--out (default: python/cpufree/kernels of the source tree, and kernels of the package), from where
wheels take them. They are found again by a hash of their text and all headers: after a change of
either they have to be made again, and until then kernels are compiled when they are first used.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/gpu-usual/python"
ARCHITECTURES = "sm_90,sm_100"


def main() -> int:
    """Make them; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", type=Path, default=BUILD, metavar="FOLDER")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("--architectures", default=ARCHITECTURES, metavar="LIST")
    given = parser.parse_args()
    sys.path.insert(0, str(given.package))
    # What `make install` has installed, this tree, would be found first.
    sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]
    from cpufree.extension import load_core, set_compiler

    core = load_core()
    if not core.kernels_compiled():
        print(
            f"ship_kernels: {given.package} has no GPU engine that compiles kernels: "
            "build with KERNELS=USUAL tools/build_gpu.sh",
            file=sys.stderr,
        )
        return 1
    set_compiler(core)
    out = given.out or ROOT / "python/cpufree/kernels"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for architecture in given.architectures.split(","):
        begin = time.perf_counter()
        count = core.ship_kernels(architecture, str(out))
        print(f"{architecture}: {count} files of kernels, {time.perf_counter() - begin:.0f} s")
    size = sum(file.stat().st_size for file in out.iterdir())
    print(f"{out}: {len(list(out.iterdir()))} files, {size / 1e6:.1f} MB")
    if given.out is None and given.package != ROOT / "python":
        shutil.copytree(out, given.package / "cpufree/kernels", dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
