"""Wheels: what is built, what is tried, and what a release has in common."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import pytest
from paths import ROOT

from tools.wheels import build, tried

pytestmark = pytest.mark.cpu_only


def archive(path: Path, **files: str) -> Path:
    """Write a source distribution of these files."""
    with tarfile.open(path, "w:gz") as out:
        for name, text in files.items():
            member = tarfile.TarInfo(f"cpufree-0/{name}")
            member.size = len(text)
            out.addfile(member, io.BytesIO(text.encode()))
    return path


def test_version_of_the_citation_is_that_of_the_package() -> None:
    of = [
        re.search(pattern, (ROOT / name).read_text(), re.M)
        for name, pattern in (
            ("pyproject.toml", r'^version = "(.*)"$'),
            ("CITATION.cff", r"^version: (.*)$"),
        )
    ]
    assert of[0] and of[1] and of[0].group(1) == of[1].group(1)
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", of[0].group(1))


def test_sources_that_are_as_before_keep_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "WORK", tmp_path)
    source = build.unpacked(archive(tmp_path / "1.tar.gz", same="a", other="b", gone="c"))
    (source / "build").mkdir()
    (source / "build/object").write_text("compiled")
    for file in source.iterdir():
        os.utime(file, (1e9, 1e9))
    build.unpacked(archive(tmp_path / "2.tar.gz", same="a", other="B", new="d"))
    assert {file.name for file in source.iterdir()} == {"same", "other", "new", "build"}
    assert (source / "same").stat().st_mtime == 1e9
    assert (source / "other").stat().st_mtime > 1e9
    assert (source / "other").read_text() == "B"
    assert (source / "build/object").exists()


def test_a_wheel_that_cannot_be_made_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = build.Target("3.10", "x86_64", gpu=False)
    monkeypatch.setattr(build, "found", lambda version: None)
    with pytest.raises(build.CannotMakeError, match=r"python3\.10 was not found"):
        build.raw_wheel(target, tmp_path)
    monkeypatch.setattr(build, "found", lambda version: Path("/usr/bin/python3"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "", "", "", "x86_64")))
    with pytest.raises(build.CannotMakeError, match=r"g\+\+-aarch64-linux-gnu"):
        build.raw_wheel(build.Target("3.10", "aarch64", gpu=False), tmp_path)


def test_versions_below_the_stable_abi_have_wheels_of_their_own() -> None:
    assert build.versions() == ["3.10", "3.11", "3.12"]
    text = (ROOT / "pyproject.toml").read_text()
    assert f'wheel.py-api = "cp{build.STABLE.replace(".", "")}"' in text


def test_glibc_is_read_from_the_tag_and_no_tag_is_an_error() -> None:
    assert build.oldest_glibc("cpufree-0.1.0-cp312-abi3-manylinux_2_34_x86_64.whl") == (2, 34)
    name = "cpufree-0.1.0-cp312-abi3-manylinux_2_31_x86_64.manylinux_2_34_x86_64.whl"
    assert build.oldest_glibc(name) == (2, 31)
    with pytest.raises(SystemExit, match="no tag of manylinux"):
        build.oldest_glibc("cpufree-0.1.0-cp312-abi3-linux_x86_64.whl")


def test_a_wheel_is_taken_by_the_versions_that_it_serves(tmp_path: Path) -> None:
    for tags in ("cp310-cp310-manylinux_2_34_x86_64", "cp312-abi3-manylinux_2_34_x86_64"):
        (tmp_path / f"cpufree-0.1.0-{tags}.whl").touch()
    names = {
        version: file and file.name.split("-")[2]
        for version in ("3.10", "3.11", "3.12", "3.14")
        for file in [tried.wheel_for(tmp_path, version, "x86_64")]
    }
    assert names == {"3.10": "cp310", "3.11": None, "3.12": "cp312", "3.14": "cp312"}
    assert tried.wheel_for(tmp_path, "3.12", "aarch64") is None


@pytest.mark.parametrize(("size", "fits"), [("8", True), ("4", False)])
def test_headers_of_python_for_other_sizes_are_refused(
    tmp_path: Path, size: str, fits: bool
) -> None:
    given = Path(sysconfig.get_config_h_filename()).read_text()
    assert "#define SIZEOF_LONG 8" in given
    headers = given.replace("#define SIZEOF_LONG 8", f"#define SIZEOF_LONG {size}")
    (tmp_path / "pyconfig.h").write_text(headers)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(headers LANGUAGES CXX)\n"
        f'set(Python_INCLUDE_DIRS "{tmp_path}")\ninclude("{ROOT}/cmake/cross_python.cmake")\n'
    )
    # A system that is named counts as another one.
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-DCMAKE_SYSTEM_NAME=Linux"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == fits, done.stderr
    assert fits or "are for a processor with other" in " ".join(done.stderr.split())
