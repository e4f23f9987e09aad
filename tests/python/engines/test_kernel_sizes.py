"""What NVRTC has to compile for the usual solve stays small: who solves first waits for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import nvrtc
import pytest
from paths import ROOT

needs_compiler = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not here")
# Bytes of machine code; a kernel of 260 000 takes NVRTC some 3 s.
MOST_BYTES = {
    ("prcg", "jacobi"): 190_000,
    ("prcg", "fsai"): 245_000,
    ("prcg", "chebyshev"): 225_000,
    ("cg", "chebyshev"): 280_000,
    ("pipecg", "jacobi"): 265_000,
    ("cg", "amg"): 400_000,
    ("minres", "jacobi"): 205_000,  # two steps of x at a time
    ("bicgstab", "jacobi"): 270_000,
}


def _kernel_times() -> Any:
    path = Path(ROOT) / "bench/builds/kernel_times.py"
    spec = importlib.util.spec_from_file_location("kernel_times", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiler
@pytest.mark.few(4)
@pytest.mark.parametrize(("method", "pc"), MOST_BYTES)
def test_kernels_for_what_occurs_are_small(
    method: str, pc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(ROOT) / "bench"))
    text = _kernel_times().text_of(method, pc, "what occurs")
    code = nvrtc.compile_text(text, options=nvrtc.OPTIONS[:3])
    assert len(code) <= MOST_BYTES[method, pc]
