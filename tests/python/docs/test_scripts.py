"""The harness of the C++ tests, shell scripts, and hooks."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

HARNESS_CASES = """
#include "harness.hpp"
#include <stdexcept>
static int fail() { throw std::runtime_error("thrown"); }
TEST(passes) { CHECK(true); CHECK_EQ(2, 1 + 1); CHECK_NEAR(1.0, 1.1, 0.2);
               CHECK_THROWS(std::runtime_error, fail()); }
TEST(fails_check) { CHECK(1 > 2); }
TEST(fails_equal) { CHECK_EQ(3, 4); }
TEST(fails_near_nan) { CHECK_NEAR(1.0, NAN, 1.0); }
TEST(fails_throws) { CHECK_THROWS(std::runtime_error, 1); }
TEST(fails_other_type) { CHECK_THROWS(std::logic_error, fail()); }
TEST(fails_empty) {}
"""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a test program built on the harness, most of whose tests fail."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("harness")
    (folder / "test_cases.cpp").write_text(HARNESS_CASES)
    program = folder / "cases"
    command = [
        compiler,
        "-std=c++20",
        f"-I{ROOT / 'tests/cpp/support'}",
        "test_cases.cpp",
        "-o",
        program,
    ]
    subprocess.run(command, cwd=folder, check=True)
    return program


def test_harness_counts_and_names_failures(harness: Path) -> None:
    found = subprocess.run([harness], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stdout.splitlines()[-1] == "1 passed, 6 failed"
    failed = re.findall(r"^FAILED (\w+)$", found.stderr, re.M)
    assert failed == [
        "fails_check",
        "fails_equal",
        "fails_near_nan",
        "fails_throws",
        "fails_other_type",
        "fails_empty",
    ]
    assert "test_cases.cpp:7: failed: 1 > 2" in found.stderr
    assert "3 == 4\n    value: 3\n    value: 4" in found.stderr


def test_harness_filters_and_lists(harness: Path) -> None:
    filtered = subprocess.run([harness, "--filter", "passes"], capture_output=True, text=True)
    assert (filtered.returncode, filtered.stdout) == (0, "1 passed, 0 failed\n")
    listed = subprocess.run([harness, "--list"], capture_output=True, text=True)
    assert listed.stdout.splitlines()[0] == "passes"
    assert len(listed.stdout.splitlines()) == 7


def test_harness_fails_when_filter_matches_nothing(harness: Path) -> None:
    found = subprocess.run([harness, "--filter", "nonesuch"], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "0 passed, 0 failed\n")


SCRIPTS = [ROOT / ".ci/run", *sorted((ROOT / "tools").glob("*.sh"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shell_scripts_parse(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_setup_reads_every_requirement_of_pyproject() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for key in ("requires", "dependencies", "build", "test", "dev"):
        found = re.search(rf"^{key} = (\[.*?\])$", text, re.M | re.S)
        assert found, f"tools/setup_env.sh would not find {key}"
        requirements = ast.literal_eval(found.group(1))
        assert requirements
        assert all(isinstance(item, str) for item in requirements)


def test_demo_needs_no_tools_of_lint_and_tests() -> None:
    makefile, text = (ROOT / "Makefile").read_text(), (ROOT / "pyproject.toml").read_text()
    steps = dict(re.findall(r"^\$\(VENV\)/\.(\w+): (.*)$", makefile, re.M))
    assert "$(VENV)/.requirements" in steps["installed"]
    assert "dependencies" not in steps["installed"] + steps["requirements"]
    assert re.search(r"^\ttools/setup_env.sh --build \$\(VENV\)$", makefile, re.M)
    lists = {key: re.search(rf"^{key} = (\[.*?\])$", text, re.M | re.S) for key in ("build", "dev")}
    build, dev = (ast.literal_eval(found[1]) if found else [] for found in lists.values())
    assert [item for item in build if re.match("cmake|ninja", item)] == build != []
    assert any(item.startswith("ruff") for item in dev)


def test_builds_of_the_package_name_each_option_that_a_cache_could_keep() -> None:
    cmake, text = (ROOT / "CMakeLists.txt").read_text(), (ROOT / "pyproject.toml").read_text()
    # What is found out, INTERNAL, is no option.
    options = r"^(?:option|set)\((CPUFREE_\w+) (?!.*CACHE INTERNAL)"
    known = set(re.findall(options, cmake, re.M))
    defined = text.partition("[tool.scikit-build.cmake.define]")[2].partition("\n[")[0]
    assert known == set(re.findall(r"^(CPUFREE_\w+) =", defined, re.M))


def test_setup_names_what_to_do_when_python_is_missing(tmp_path: Path) -> None:
    found = subprocess.run(
        ["bash", str(ROOT / "tools/setup_env.sh"), str(tmp_path / "env")],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHON": "no-such-python"},
    )
    assert found.returncode == 1
    assert "'no-such-python' was not found" in found.stderr
    assert "PYTHON=/path/to/python3" in found.stderr


def test_hooks_before_a_commit_are_the_checks_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(r"^lint: (.*)$", makefile, re.M)
    assert found
    checks = found[1].split()
    hooks = re.findall(
        r"^ +entry: make (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.M
    )
    assert hooks == checks
    assert all(re.search(rf"^{check}:", makefile, re.M) for check in checks)


def test_check_of_a_cuda_build_refuses_one_without_extension(tmp_path: Path) -> None:
    check = [sys.executable, str(ROOT / "tools/check_cuda_build.py"), str(tmp_path)]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode != 0
    assert "does not load" in done.stderr
