"""Where GPU kernels come from that are compiled when they are first used."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_core import FakeCore

from cpufree.extension import COMPILER, find_compiler, load_for

ROOT = Path(__file__).resolve().parents[3]
# What cpufree/gpu/device_std.hpp stands in for: no header of containers, strings or streams.
NAMES_OF_KERNELS = "cpufree/solvers/host/kernel_names.hpp"
FOR_KERNELS = {
    *("cmath", "concepts", "cstddef", "cstdint", "cstring", "limits", "new"),
    *("type_traits", "utility"),
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Return an extension with GPUs whose kernels are compiled when they are first used."""
    fake = FakeCore(1, compiler="NVRTC 13.0")
    monkeypatch.setattr("cpufree._core", fake)
    return fake


def put_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path, there: bool) -> Path:
    """Make a package as the wheel nvidia-cuda-nvrtc has, with its library or without."""
    library = folder / "nvidia/cu13/lib" / COMPILER
    library.parent.mkdir(parents=True)
    if there:
        library.touch()
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(folder)])
    return library


def test_compiler_of_the_wheel_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = put_compiler(monkeypatch, tmp_path, there=True)
    assert find_compiler() == str(library)


def test_package_without_the_compiler_leaves_it_to_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_compiler(monkeypatch, tmp_path, there=False)
    assert find_compiler() == ""


def test_without_packages_of_nvidia_the_compiler_is_left_to_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    assert find_compiler() == ""


@pytest.mark.parametrize("engine", ["cuda_p2p", "nvshmem"])
def test_engine_on_gpus_knows_compiler_and_folder(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str
) -> None:
    library = put_compiler(monkeypatch, tmp_path, there=True)
    kept = str(tmp_path / "kept")
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", kept)
    monkeypatch.setattr("cpufree.extension.SHIPPED", tmp_path / "none")
    load_for(engine)
    assert fake.kernels_from == [(str(library), [kept], "")]


def test_engine_on_the_cpu_asks_for_no_compiler(fake: FakeCore) -> None:
    load_for("cpu_threads")
    assert fake.kernels_from == []


def test_built_in_kernels_ask_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCore(1)
    monkeypatch.setattr("cpufree._core", fake)
    load_for("cuda_p2p")
    assert fake.kernels_from == []


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the C++ file that holds the headers of kernels, with what it is made of beside it."""
    out = tmp_path_factory.mktemp("headers") / "kernel_headers.cpp"
    script = str(ROOT / "cmake/embed_headers.py")
    subprocess.run([sys.executable, script, str(out), f"{out}.d"], check=True)
    return out


def test_headers_of_kernels_need_no_more_of_the_standard_library_than_kernels_have(
    embedded: Path,
) -> None:
    lines = embedded.read_text().splitlines()
    standard = {
        line[2:].split('"')[0]
        for line in lines
        if "/device_std.hpp" in line and line.startswith('{"') and not line.startswith('{"cpufree/')
    }
    assert standard == standard & FOR_KERNELS
    assert "cstdint" in standard


def test_headers_of_kernels_are_the_files_they_are_made_of(embedded: Path) -> None:
    files = Path(f"{embedded}.d").read_text().split(": ", 1)[1].split()
    name = "cpufree/solvers/kernel.hpp"
    assert str(ROOT / name) in files
    assert all(Path(file).is_file() for file in files)
    assert (ROOT / name).read_text().splitlines()[0] in embedded.read_text()


def test_headers_that_texts_of_gpu_kernels_include_are_embedded(embedded: Path) -> None:
    # Those of programs are named by Python's emitters, whose texts the tests of the compiler build.
    places = [*ROOT.glob("cpufree/**/gpu/**/*.[ch]pp"), ROOT / NAMES_OF_KERNELS]
    lines = [line for place in places for line in place.read_text().splitlines()]
    named = r'"([\w/]+/\w+\.(?:hpp|cuh))"'
    names = {name for line in lines if "#" not in line for name in re.findall(named, line)}
    assert {"solvers/block_cg.hpp", "solvers/kernel.hpp"} <= names
    texts = embedded.read_text()
    for name in sorted(names):
        full = name if name.startswith("cpufree/") else f"cpufree/{name}"
        assert f'{{"{full}"' in texts, f"{full}: cmake/embed_headers.py lists none that includes it"
