"""The house rules' own checkers: a planted violation must be found, the repository must pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from tools import check_build


def check_layers(root: Path) -> subprocess.CompletedProcess[str]:
    """Run tools/check_layers.py on a directory tree."""
    command = [sys.executable, str(ROOT / "tools/check_layers.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True)


def plant(root: Path, name: str, text: str) -> None:
    """Write one file of a small tree; its folder is made."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "cpufree/solvers/cg.hpp",
            '#pragma once\n#include "cpufree/engines/cpu_threads/port.hpp"\n',
            "cpufree/solvers/cg.hpp:2: solvers may not include engines/cpu_threads",
        ),
        (
            "cpufree/engines/cpu_threads/port.hpp",
            '#include "cpufree/engines/gpu_p2p/port.hpp"\n',
            "engines/cpu_threads may not include engines/gpu_p2p",
        ),
        (
            "cpufree/baselines/cg.hpp",
            '#include "cpufree/solvers/cg.hpp"\n',
            "baselines may not include solvers",
        ),
        (
            "cpufree/base/error.hpp",
            '#include "cpufree/problem/csr.hpp"\n',
            "base may not include problem",
        ),
        ("cpufree/solvers/host/run.cpp", '#include "spec.hpp"\n', "include from the root"),
        ("cpufree/extras/a.hpp", "\n", "'extras' is not a room"),
        (
            "cpufree/gpu/memory.hpp",
            '#include "cpufree/engines/gpu_p2p/shared.hpp"\n',
            "gpu may not include engines/gpu_p2p",
        ),
        (
            "cpufree/solvers/host/a.cpp",
            "\ncudaFree(p);\n",
            "a.cpp:2: 'cudaFree': names of a GPU's vendor",
        ),
        (
            "cpufree/solvers/host/a.hpp",
            "#include <cuda_runtime.h>\n",
            "'cuda_runtime.h': names of a GPU",
        ),
        ("cpufree/gpu/memory.hpp", "void f(cudaStream_t);\n", "'cudaStream_t': names of a GPU"),
        (
            "cpufree/solvers/host/a.cu",
            "kernel<<<dim3(1), 2>>>();\n",
            "'dim3': names of a GPU's vendor",
        ),
        ("cpufree/solvers/a.hpp", "int i = threadIdx.x;\n", "'threadIdx': algorithms ask the port"),
        ("cpufree/solvers/host/a.cpp", 'auto x = std::getenv("X");\n', "environment variables"),
        ("python/cpufree/text.py", "import os\nos.environ['X']\n", "text.py:2: environment"),
        (
            "python/cpufree/matrix/problem.py",
            "from cpufree import solvers\n",
            "matrix may not import solvers",
        ),
        (
            "python/cpufree/matrix/info.py",
            "from cpufree.matrix import load\n",
            "matrix may not import matrix.load",
        ),
        ("python/cpufree/matrix/io/a.py", "from ... import cli\n", "matrix may not import cli"),
        ("python/cpufree/matrix/a.py", "import cpufree.cli.app\n", "matrix may not import cli"),
        (
            "python/cpufree/stencil/a.py",
            "from cpufree import solve\n",
            "stencil may not import cpufree.solve",
        ),
        (
            "python/cpufree/generate/a.py",
            "from ..engines import f\n",
            "generate may not import engi",
        ),
        ("python/cpufree/extras.py", "\n", "'extras' is not a room"),
    ],
)
def test_layers_find_planted_violation(tmp_path: Path, name: str, text: str, reason: str) -> None:
    plant(tmp_path, name, text)
    found = check_layers(tmp_path)
    assert found.returncode == 1
    assert reason in found.stdout


def test_layers_accept_what_the_table_allows(tmp_path: Path) -> None:
    plant(tmp_path, "cpufree/solvers/cg.hpp", '#include "cpufree/device/port.hpp"\n')
    plant(tmp_path, "cpufree/baselines/cg.hpp", '#include "cpufree/solvers/method.hpp"\n')
    plant(tmp_path, "cpufree/engines/cpu_threads/a.cpp", '#include "cpufree/base/error.hpp"\n')
    plant(tmp_path, "cpufree/engines/gpu_p2p/a.hpp", '#include "cpufree/gpu/memory.hpp"\n')
    plant(tmp_path, "cpufree/engines/gpu_p2p/a.cuh", "int lane() { return threadIdx.x; }\n")
    plant(tmp_path, "cpufree/gpu/cuda/gpu_names.hpp", "#define gpuFree cudaFree\n")
    plant(tmp_path, "python/cpufree/generate/a.py", "from . import b\nfrom ..errors import E\n")
    plant(tmp_path, "python/cpufree/matrix/load.py", "from cpufree.generate import registry\n")
    plant(tmp_path, "python/cpufree/cli/app.py", "from cpufree import bench\nimport cpufree.env\n")
    found = check_layers(tmp_path)
    assert found.returncode == 0, found.stdout


def test_layers_bound_how_many_files_of_the_extension_see_the_port(tmp_path: Path) -> None:
    plant(tmp_path, "cpufree/device/port.hpp", "\n")
    plant(tmp_path, "cpufree/device/wait.hpp", '#include "cpufree/device/port.hpp"\n')
    for k in range(35):
        plant(tmp_path, f"cpufree/solvers/host/a{k}.cpp", '#include "cpufree/device/wait.hpp"\n')
    # Of no usual build: it does not count.
    plant(tmp_path, "cpufree/solvers/gpu/a.cpp", '#include "cpufree/device/wait.hpp"\n')
    assert check_layers(tmp_path).returncode == 0
    plant(tmp_path, "cpufree/solvers/host/b.cpp", '#include "cpufree/device/wait.hpp"\n')
    assert "one of 36 files of the extension that see" in check_layers(tmp_path).stdout


def test_types_of_one_namespace_have_names_of_their_own(tmp_path: Path) -> None:
    plant(tmp_path, "cpufree/base/a.hpp", "namespace cpufree {\nstruct Args {\n};\n}\n")
    other = "namespace a { class B; }\nnamespace cpufree::b {\nstruct Args {\n};\n}\n"
    plant(tmp_path, "cpufree/base/b.hpp", other)
    assert check_layers(tmp_path).returncode == 0
    text = "namespace cpufree {\ntemplate <class T> class Args final : public B {\n};\n}\n"
    plant(tmp_path, "cpufree/device/c.hpp", text)
    assert "Args is a type of cpufree/base/a.hpp, too" in check_layers(tmp_path).stdout


def test_check_of_the_build_counts_units_and_kernels() -> None:
    commands = "c++ -o a.o -c /x/Unity/unity_cpu_cxx.cxx\nc++ -c /x/cpu/remote_kernel.cpp\n"
    assert check_build.units_in(commands + commands) == ["/x/Unity/unity_cpu_cxx.cxx"]
    kernel = "0 W void cpufree::solve_kernel<cpufree::ConjugateGradient, cpufree::Jacobi<T> >(P&)"
    symbols = "\n".join(kernel.replace("T", name) for name in ("float", "double", "double"))
    assert check_build.kernels_in(f"{symbols}\n0 T cpufree::other()") == 2


def test_check_of_the_build_finds_what_make_install_would_miss() -> None:
    install = "install(TARGETS {} LIBRARY DESTINATION cpufree{})\n"
    text = install.format("_core", "") + install.format("_cpu_${level}", "")
    assert check_build.not_optional(text + install.format("_a", " OPTIONAL")) == []
    assert check_build.not_optional(text + install.format("_b", "")) == ["_b"]


def test_check_of_the_build_says_what_is_missing(tmp_path: Path) -> None:
    assert check_build.main(tmp_path) == 1


@pytest.mark.parametrize(
    "last",
    [
        "from cpufree.matrix import a\n",
        "import cpufree.matrix.a\n",
        "from cpufree.matrix.a import f\n",
        "from .a import f\n",
        "def f():\n    from cpufree.matrix.a import g\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cpufree.matrix.a\n",
    ],
    ids=["from package", "import", "from module", "relative", "in function", "for types"],
)
def test_layers_find_an_import_circle(tmp_path: Path, last: str) -> None:
    plant(tmp_path, "python/cpufree/matrix/a.py", "\nfrom cpufree.matrix.b import g\n")
    plant(tmp_path, "python/cpufree/matrix/b.py", "import cpufree.matrix.c\n")
    plant(tmp_path, "python/cpufree/matrix/d.py", "import cpufree.matrix.c\n")
    plant(tmp_path, "python/cpufree/matrix/c.py", "")
    assert check_layers(tmp_path).returncode == 0
    plant(tmp_path, "python/cpufree/matrix/c.py", last)
    found = check_layers(tmp_path)
    assert found.returncode == 1
    assert found.stdout == (
        "python/cpufree/matrix/a.py:2: import circle: cpufree.matrix.a -> cpufree.matrix.b -> "
        "cpufree.matrix.c -> cpufree.matrix.a\n"
    )


def test_layers_find_a_circle_through_the_names_of_a_package(tmp_path: Path) -> None:
    plant(tmp_path, "python/cpufree/generate/__init__.py", "from cpufree.generate.a import f\n")
    plant(tmp_path, "python/cpufree/generate/a.py", "from cpufree.generate import f\n")
    assert "import circle: cpufree.generate -> cpufree.generate.a" in check_layers(tmp_path).stdout


def check_names(root: Path) -> subprocess.CompletedProcess[str]:
    """Run tools/check_names.py on a directory tree."""
    command = [sys.executable, str(ROOT / "tools/check_names.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("cpufree/base/a.hpp", "\n// See gone.hpp.\n", "cpufree/base/a.hpp:2: 'gone.hpp'"),
        ("cpufree/base/a.cpp", "/* one\n   b/gone.cu.in */\n", "a.cpp:2: 'b/gone.cu.in'"),
        ("cpufree/base/a.cuh", "int a;  // other/here.hpp\n", "a.cuh:1: 'other/here.hpp'"),
        ("python/a.py", '"""One.\n\nAs gone.py.\n"""\n', "python/a.py:3: 'gone.py'"),
        ("python/a.py", "A = 1  # as gone.cpp\n", "python/a.py:1: 'gone.cpp'"),
        ("CMakeLists.txt", "a()\n# gone.cmake\n", "CMakeLists.txt:2: 'gone.cmake'"),
        ("tools/a.sh", "#!/bin/sh\n# gone.sh\n", "tools/a.sh:2: 'gone.sh'"),
        ("Makefile", "a:\n\t@b  # gone.py\n", "Makefile:2: 'gone.py'"),
        ("docs/a.md", "\n[a](../here/gone.md)\n", "docs/a.md:2: '../here/gone.md'"),
        ("docs/a.md", "`bench/results/gone.jsonl`\n", "'bench/results/gone.jsonl'"),
    ],
)
def test_names_find_missing_file(tmp_path: Path, name: str, text: str, reason: str) -> None:
    plant(tmp_path, "cpufree/base/here.hpp", "")
    plant(tmp_path, name, text)
    found = check_names(tmp_path)
    assert found.returncode == 1
    assert f"{reason}: no such file in the repository\n" in found.stdout


def test_names_accept_existing_files_and_what_is_no_comment(tmp_path: Path) -> None:
    plant(tmp_path, "cpufree/base/here.hpp", "// here.hpp, base/here.hpp, FILE.py, *.hpp, A.mtx\n")
    plant(tmp_path, "cpufree/base/a.cpp", 'auto a = "// gone.hpp";\n#include "gone.hpp"\n')
    plant(tmp_path, "python/a.py", 'A = "gone.py"  # a.py, docs/a.md\n')
    plant(tmp_path, "docs/a.md", "[up](../python/a.py) [record](bench/results/a.json)\n")
    plant(tmp_path, "bench/results/a.json", "{}")
    plant(tmp_path, "CHANGELOG.md", "- gone.py went.\n")
    found = check_names(tmp_path)
    assert (found.returncode, found.stdout) == (0, "names: all files exist\n")


def check_headers(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tools/check_headers.py on a directory tree."""
    command = [sys.executable, str(ROOT / "tools/check_headers.py"), *options, str(root)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_headers_find_missing_include_and_missing_guard(tmp_path: Path) -> None:
    plant(tmp_path, "cpufree/base/good.hpp", "#pragma once\n#include <string>\nstd::string f();\n")
    plant(tmp_path, "cpufree/base/needs_string.hpp", "#pragma once\nstd::string g();\n")
    plant(tmp_path, "cpufree/base/unguarded.hpp", "struct S {};\n")
    found = check_headers(tmp_path)
    assert found.returncode == 1
    assert "cpufree/base/needs_string.hpp: does not compile alone" in found.stdout
    assert "cpufree/base/unguarded.hpp: does not compile alone" in found.stdout
    assert "headers: 1 of 3 compile alone" in found.stdout


def test_headers_of_the_last_commits_alone_are_compiled(tmp_path: Path) -> None:
    def commit(name: str) -> None:
        plant(tmp_path, f"cpufree/base/{name}.hpp", "std::string f();\n")  # does not compile
        own = ["-c", "user.name=a", "-c", "user.email=b"]
        for words in (["init", "-q"], ["add", "."], [*own, "commit", "-q", "-m", name]):
            subprocess.run(["git", "-C", str(tmp_path), *words], check=True)

    for name in ("first", "second", "third"):
        commit(name)
    found = check_headers(tmp_path, "--commits", "2")
    assert "headers: 0 of 2 compile alone" in found.stdout
    assert "first.hpp" not in found.stdout
    assert "headers: 0 of 3 compile alone" in check_headers(tmp_path, "--commits", "4").stdout
