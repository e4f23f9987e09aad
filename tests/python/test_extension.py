"""Extensions of the package that are built when they are first wanted."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

from cpufree import extension
from cpufree.errors import UnsupportedError

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a build folder that knows one extension, `_some`, and has no CMake yet."""
    monkeypatch.setattr(extension, "BUILD_FOLDER", tmp_path)
    (tmp_path / "build.ninja").write_text("\nbuild _some: phony _some.so\n")
    (tmp_path / "CMakeCache.txt").write_text(f"\nCMAKE_COMMAND:INTERNAL={tmp_path}/cmake\n")
    return tmp_path


def cmake(folder: Path, script: str) -> None:
    """Have the build folder a CMake of its own."""
    (folder / "cmake").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "cmake").chmod(0o755)


def test_part_is_built_once_by_the_cmake_of_its_build_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cmake(folder, f'echo "$@" >>{folder}/log; touch {folder}/_some{SUFFIX}')
    assert extension.has_part("_some")
    for _ in range(2):
        extension.make_part("_some", "something")
    assert (folder / "log").read_text() == f"--build {folder} --target _some\n" * 2
    assert capsys.readouterr().err == "cpufree: building the part for something, once\n"


def test_part_that_the_build_folder_does_not_know_is_missed_with_advice(folder: Path) -> None:
    assert not extension.has_part("_other")
    with pytest.raises(UnsupportedError, match=r"with things does not load .*_other.*: ask for it"):
        extension.load_part("_other", "things", "ask for it")


def test_part_that_does_not_compile_is_reported_with_the_output(folder: Path) -> None:
    cmake(folder, "echo no such header; exit 1")
    with pytest.raises(UnsupportedError, match="something cannot be built:\nno such header"):
        extension.load_part("_some", "something")


def test_part_that_is_built_and_does_not_load_is_reported(folder: Path) -> None:
    cmake(folder, f"echo no shared object >{folder}/_some{SUFFIX}")
    for _ in range(2):  # nothing of it is left behind
        with pytest.raises(UnsupportedError, match=r"with something does not load \(.*_some"):
            extension.load_part("_some", "something")


def test_build_folder_without_a_cmake_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(UnsupportedError, match="CMake was not found"):
        extension.load_part("_some", "something")


def test_build_folder_that_cannot_be_written_says_so(folder: Path) -> None:
    cmake(folder, "exit 0")
    (folder / ".part").mkdir()
    with pytest.raises(UnsupportedError, match=r"cannot be built: .*\.part"):
        extension.load_part("_some", "something")
