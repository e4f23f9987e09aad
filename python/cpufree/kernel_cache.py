"""Where kernels are kept that were compiled on this machine: those of solvers and of programs, for
CPUs and GPUs.

A file is named by a digest of all that its code depends on. The extension reads and writes them
(cpufree/base/code_cache.hpp): a file that was cut off or damaged is made again, and of several
processes that want the same kernel one makes it while the others wait.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path

from cpufree import env
from cpufree.errors import CpufreeWarning


def folders() -> list[str]:
    """Return the folders that kernels are looked for in; they are kept in the first one.

    That is the one of `env.kernel_cache`, and where that cannot be written, a temporary one of
    this user besides, with a warning. None where nothing is to be kept.
    """
    said = env.kernel_cache()
    return list(_folders(said.folder, said.why_none)) if said.kept else []


@cache
def _folders(folder: str, why_none: str) -> tuple[str, ...]:
    """Return the same for one answer of the environment; it is looked at, and warned of, once."""
    problem = why_none or _problem(Path(folder))
    if not problem:
        return (folder,)
    other = _temporary()
    kept = f"in {other} for now" if other else "for this process alone"
    warnings.warn(
        f"compiled kernels cannot be kept where they belong ({problem}), and are kept {kept}: name "
        "a folder in CPUFREE_KERNEL_CACHE",
        CpufreeWarning,
        stacklevel=3,
    )
    return tuple(one for one in (folder, other) if one)


def _problem(folder: Path) -> str:
    """Return why a folder cannot be written, "" where it can; make it if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror or error}"


def _temporary() -> str:
    """Return a temporary folder that this user alone can write, "" where there is none.

    Code is loaded from it: a folder of another user is not taken.
    """
    try:
        folder = Path(tempfile.gettempdir()) / f"cpufree-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return ""
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return str(folder) if mine and not found.st_mode & 0o022 else ""


def described() -> str:
    """Return where kernels are kept, how many and how large, for `cpufree doctor`."""
    if not env.kernel_cache().kept:
        return "not kept (CPUFREE_KERNEL_CACHE=off)"
    found = folders()
    if not found:
        return "not kept: no folder can be written"
    sizes = [file.stat().st_size for one in found for file in Path(one).glob("*.kernel")]
    where = " and ".join(found)
    return f"kept in {where}: {len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB"
