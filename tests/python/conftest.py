"""Fixtures shared by the tests, and the options --engine and --gpus.

    pytest --engine cuda_p2p --gpus 0-3

runs the tests on another engine than the CPU's: it becomes the preset of the environment. Tests
that are about the CPU engine (`cpu_only`) are skipped, and so are those that need more GPUs.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compiled_here
import pytest
from failures import Failures
from fake_core import FakeCore, Machine
from parts import add_option, keep_part, mark_thorough
from paths import ROOT
from ranks_here import free_port

from cpufree.cli import app as cli
from cpufree.env import gpu_numbers
from cpufree.errors import NotEnoughGpusError

CPU_ENGINE = "cpu_threads"


@pytest.fixture(autouse=True)
def no_driver_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tests choose alike where there is a driver, and whichever test has asked it before."""
    monkeypatch.setattr("cpufree.engines.gpus.DRIVERS", ())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --engine, --gpus, --part and --failures."""
    group = parser.getgroup("cpufree")
    group.addoption(
        "--engine", choices=[CPU_ENGINE, "cuda_p2p"], default=CPU_ENGINE, help="engine of the tests"
    )
    group.addoption("--gpus", help="GPUs of the tests: all, or numbers such as 0,2-5")
    group.addoption("--failures", help="file for what fails, written as it fails", metavar="FILE")
    add_option(group)


def pytest_configure(config: pytest.Config) -> None:
    """Preset the engine for this process and those that tests start."""
    config.addinivalue_line("markers", "cpu_only: about the CPU engine; skipped on others")
    engine, gpus = config.getoption("--engine"), config.getoption("--gpus")
    if gpus is not None and engine == CPU_ENGINE:
        raise pytest.UsageError("--gpus needs --engine cuda_p2p")
    os.environ["CPUFREE_ENGINE"] = engine
    compiled_here.prepare()
    config.pluginmanager.register(FewCases())
    if (file := config.getoption("--failures")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(file)))
    if gpus is not None:
        try:
            gpu_numbers(gpus)
        except ValueError as error:
            raise pytest.UsageError(f"--gpus {gpus}: {error}") from None
        os.environ["CPUFREE_GPUS"] = gpus


class FewCases:
    """Marks the cases that are left to thorough runs, before pytest looks at marks."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark them."""
        mark_thorough(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take what was asked for; skip what is about the CPU engine on another one."""
    keep_part(config, items)
    if config.getoption("--engine") == CPU_ENGINE:
        return
    for item in items:
        if item.get_closest_marker("cpu_only"):
            item.add_marker(pytest.mark.skip(reason="about the CPU engine"))


@contextlib.contextmanager
def skip_without_enough_gpus(config: pytest.Config) -> Iterator[None]:
    """Skip a test that asks for more GPUs than there are, when the tests run on GPUs."""
    try:
        yield
    except NotEnoughGpusError as error:
        if config.getoption("--engine") == CPU_ENGINE:
            raise
        pytest.skip(f"needs more GPUs: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip where a test finds too few GPUs."""
    with skip_without_enough_gpus(item.config):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skip where a fixture finds too few GPUs."""
    with skip_without_enough_gpus(request.config):
        return (yield)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The engine on which the tests run."""
    return str(request.config.getoption("--engine"))


@pytest.fixture(autouse=True)
def too_few_gpus_pass_the_command_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NotEnoughGpusError through the command line, which would make it an exit code."""
    if engine == CPU_ENGINE:
        return
    explain = cli.explain

    def let_through(error: Exception) -> tuple[int, str]:
        if isinstance(error, NotEnoughGpusError):
            raise error
        return explain(error)

    monkeypatch.setattr(cli, "explain", let_through)


@pytest.fixture(scope="module")
def few_replicates() -> Iterator[None]:
    """Fit with few draws of the bootstrap, where intervals are not what a test is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpufree.model.extras.REPLICATES", 20)
        yield


def find_data_dir() -> Path | None:
    """Return the directory of SuiteSparse matrices, None where there is none."""
    named = os.environ.get("CPUFREE_DATA")
    directory = Path(named) if named else ROOT.parent / "shared" / "data"
    return directory if any(directory.glob("*.mtx.gz")) else None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """A directory of SuiteSparse matrices (.mtx.gz); tests that need it skip where it is not."""
    directory = find_data_dir()
    if directory is None:
        pytest.skip("no directory of SuiteSparse matrices; name one in CPUFREE_DATA")
    return directory


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Let tests, and what they start, hear of SIGINT and SIGHUP.

    Background jobs of a shell ignore the one, those of nohup the other.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hung_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGHUP, hung_up)


@pytest.fixture
def users_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as users do: tests have a quicker way (compiled_here)."""
    monkeypatch.delenv("CPUFREE_CXX")
    if compiled_here.NAMED is not None:
        monkeypatch.setenv("CPUFREE_CXX", compiled_here.NAMED)


@pytest.fixture
def place() -> str:
    """Return where ranks meet."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that puts a fake extension, made of its arguments, in for the real one."""
    monkeypatch.delenv("CPUFREE_ENGINE", raising=False)
    monkeypatch.delenv("CPUFREE_GPUS", raising=False)

    def put(*arguments: Any, **named: Any) -> FakeCore:
        fake = FakeCore(*arguments, **named)
        monkeypatch.setattr("cpufree._core", fake)
        return fake

    return put
