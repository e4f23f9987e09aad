"""What NVRTC has to compile for the usual solve stays small: who solves first waits for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import nvrtc
import pytest
from paths import ROOT

needs_compiler = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not here")
MOST_BYTES = (
    260_000  # of machine code; one for any matrix has 424 000 and takes three times as long
)


def _kernel_times() -> Any:
    path = Path(ROOT) / "bench/kernel_times.py"
    spec = importlib.util.spec_from_file_location("kernel_times", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
def test_kernel_of_the_usual_solve_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(ROOT) / "bench"))
    text = _kernel_times().text_of("prcg", "jacobi", "what occurs")
    assert len(nvrtc.compile_text(text, options=nvrtc.OPTIONS[:3])) <= MOST_BYTES
