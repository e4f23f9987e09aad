"""What is compiled at run time is kept, found again, and made again where its file is damaged."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cpufree import cpu_kernels, kernel_cache
from cpufree.cpu_kernels import Built, build
from cpufree.errors import CpufreeWarning, EngineError, UnsupportedError

TEXT = 'extern "C" int seven() { return 7; }\n'

# In a process of its own: one that is loaded is found by its name, and would lose its pages.
PROGRAM = (
    "from cpufree import cpu_kernels\ncpu_kernels._PORT = ''\n"
    f"print(cpu_kernels.build('a test', {TEXT!r}, ('-O0',), 'seven').was_there)"
)
RUN = [sys.executable, "-c", PROGRAM]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder that kernels are kept in, empty; texts are compiled without the port."""
    kept = tmp_path / "kept"
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", str(kept))
    # Without the headers that it reads first in tests (compiled_here.py): none is needed here.
    compiler = os.environ.get("CPUFREE_CXX", "c++").partition(" -include ")[0]
    monkeypatch.setenv("CPUFREE_CXX", compiler)
    monkeypatch.setattr(cpu_kernels, "_PORT", "")
    return kept


def seven(**more: str) -> Built:
    """Return TEXT compiled."""
    built = build("a test", more.get("text", TEXT), ("-O0",), "seven")
    assert ctypes.CFUNCTYPE(ctypes.c_int)(built.address)() == 7
    return built


def kernels_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel"))


def test_what_was_compiled_is_found_again(folder: Path) -> None:
    first, second = seven(), seven()
    assert (first.was_there, second.was_there) == (False, True)
    assert first.path == second.path == kernels_in(folder)[0]


def test_another_text_or_compiler_is_another_kernel(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seven()
    assert not seven(text=f"// other\n{TEXT}").was_there
    monkeypatch.setenv("CPUFREE_CXX", f"{os.environ.get('CXX', 'c++')} -DOTHER")
    assert not seven().was_there
    assert len(kernels_in(folder)) == 3


@pytest.mark.parametrize("damage", ["cut off", "empty", "changed"])
def test_damaged_file_is_made_again(folder: Path, damage: str) -> None:
    assert subprocess.run(RUN, capture_output=True, text=True).stdout == "False\n"
    (file,) = kernels_in(folder)
    whole = file.read_bytes()
    changed = whole[:4096] + bytes([whole[4096] ^ 1]) + whole[4097:]
    file.write_bytes({"cut off": whole[:5000], "empty": b"", "changed": changed}[damage])
    again = subprocess.run(RUN, capture_output=True, text=True)
    assert (again.returncode, again.stdout) == (0, "False\n"), again.stderr
    assert subprocess.run(RUN, capture_output=True, text=True).stdout == "True\n"


def test_whole_file_that_does_not_load_is_made_again(folder: Path) -> None:
    assert subprocess.run(RUN, capture_output=True, text=True).stdout == "False\n"
    (file,) = kernels_in(folder)
    kept = cpu_kernels.load_core().CodeCache([str(folder)])
    assert kept.keep(file.stem, b"no shared object") == str(file)
    assert subprocess.run(RUN, capture_output=True, text=True).stdout == "False\n"
    assert subprocess.run(RUN, capture_output=True, text=True).stdout == "True\n"


def test_off_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", "off")
    assert not seven().was_there and not seven().was_there
    assert kernel_cache.folders() == [] and not kernels_in(folder)


def test_processes_that_want_the_same_kernel_compile_it_once(folder: Path, tmp_path: Path) -> None:
    log, compiler = tmp_path / "log", tmp_path / "compiler"
    real = os.environ.get("CXX", "c++")
    # Slow enough that all processes have asked before it ends.
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) ;; *) echo compiled >>{log}; sleep 2 ;; esac\n'
        f'exec {real} "$@"\n'
    )
    compiler.chmod(0o755)
    program = f"from cpufree.cpu_kernels import build\nbuild('a test', {TEXT!r}, ('-O0',), 'seven')"
    environment = {**os.environ, "CPUFREE_CXX": str(compiler)}
    running = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(8)]
    assert [one.wait() for one in running] == [0] * 8
    assert log.read_text() == "compiled\n"


def test_folder_that_cannot_be_written_gives_a_warning_and_a_temporary_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder.touch()  # a file where the folder should be
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(CpufreeWarning, match=r"cannot be kept .* CPUFREE_KERNEL_CACHE"):
        assert not seven().was_there
    assert seven().was_there
    assert kernels_in(tmp_path / f"cpufree-{os.getuid()}")


def test_user_without_a_home_gets_a_warning_and_a_temporary_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unknown() -> Path:
        raise RuntimeError("no home of this user")

    for name in ("CPUFREE_KERNEL_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kernel_cache._folders.cache_clear()
    with pytest.warns(CpufreeWarning, match="no home of this user"):
        assert kernel_cache.folders() == [str(tmp_path / f"cpufree-{os.getuid()}")]


def test_temporary_folder_that_others_can_write_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder.touch()
    (tmp_path / f"cpufree-{os.getuid()}").mkdir()
    (tmp_path / f"cpufree-{os.getuid()}").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(CpufreeWarning, match="for this process alone"):
        assert kernel_cache.folders() == [str(folder)]
    assert not seven().was_there and not seven().was_there


def test_kernel_that_is_not_built_in_names_the_build_that_has_it_where_no_compiler_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPUFREE_CXX", "no-such-compiler")
    with pytest.raises(UnsupportedError, match=r"pipecg is not built in.*CPUFREE_KERNELS=ALL"):
        cpu_kernels.solver_kernel("pipecg", TEXT, "-O0", True)


def test_kernel_that_no_build_has_names_no_build_where_no_compiler_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPUFREE_CXX", "no-such-compiler")
    with pytest.raises(UnsupportedError, match="a study is not built in") as caught:
        cpu_kernels.solver_kernel("a study", TEXT, "-O0", False)
    assert "CPUFREE_KERNELS" not in str(caught.value)


def test_text_that_does_not_compile_is_kept_for_the_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EngineError, match="please report this") as caught:
        build("a test", "no C++\n", ("-O0",), "seven")
    (kept,) = tmp_path.glob("cpufree-kernel-*.cpp")
    assert str(kept) in str(caught.value) and kept.read_text() == "no C++\n"
    assert not kernels_in(folder)
