"""clang for AMD's GPUs, from Debian's packages: unpacked into a folder, not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/hip"
# 58 MB; rocm-device-libs has the functions of mathematics.
PACKAGES = (
    *("clang-19", "libclang-cpp19", "libclang-common-19-dev", "libllvm19", "llvm-19", "lld-19"),
    "rocm-device-libs",
    "libamdhip64-dev",  # headers
)
LLVM = "usr/lib/llvm-19"
BITCODE = "usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
# What all kernels are compiled with, as cpufree/gpu/hip/gpu_compiler.hpp says: the compiler's own
# header stands for what hiprtc includes by itself.
OPTIONS = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-O3", "-std=c++20"),
    *("-nogpuinc", "-nogpulib", "-nostdinc++", "-D__HIPCC_RTC__"),
    *("-include", "__clang_hip_runtime_wrapper.h"),
)
HEAD = '#include "cpufree/gpu/hip/prelude.hpp"\n#line 1\n'
TAIL = '\n#include "cpufree/gpu/hip/end.hpp"\n'


LIMIT = 1200.0
"""Seconds that a tool may take for one kernel."""


class NotThereError(Exception):
    """The packages cannot be had here."""


def embedded() -> dict[str, str]:
    """Return the headers that kernels for AMD's GPUs are made of, by name."""
    sys.path.insert(0, str(ROOT / "cmake"))
    from embed_headers import headers_of

    found: dict[str, str] = headers_of(vendor="hip")
    return found


def _run(command: list[str], folder: Path, seconds: int = 120) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThereError(str(error)) from None
    if done.returncode != 0:
        raise NotThereError(f"{' '.join(command[:2])}: {(done.stderr or done.stdout)[-300:]}")


@dataclass
class Compiler:
    """A folder with the packages, and the headers of kernels."""

    folder: Path = FOLDER

    def __post_init__(self) -> None:
        self.root = self.folder / "root"
        self.headers = self.folder / "headers"
        libraries = [self.root / "usr/lib/x86_64-linux-gnu", self.root / LLVM / "lib"]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}

    def fetch(self) -> None:
        """Get the packages, if they are not there; NotThereError where that cannot be."""
        if not (self.root / BITCODE / "ocml.bc").exists():
            for tool in ("apt-get", "dpkg"):
                if shutil.which(tool) is None:
                    raise NotThereError(f"{tool} was not found: packages come from Debian")
            shutil.rmtree(self.root, ignore_errors=True)
            parts = self.folder / "packages"
            parts.mkdir(parents=True, exist_ok=True)
            _run(["apt-get", "-q", "download", *PACKAGES], parts)
            for part in sorted(parts.glob("*.deb")):
                _run(["dpkg", "-x", part.name, str(self.root)], parts)
            shutil.rmtree(parts)
        try:
            self.tool("clang", "--version")
            for number in ("90a", "942"):
                if not (self.root / BITCODE / f"oclc_isa_version_{number}.bc").exists():
                    self._make_isa_version(number)
        except (OSError, RuntimeError) as error:
            raise NotThereError(f"clang of these packages does not run: {error}") from None
        shutil.rmtree(self.headers, ignore_errors=True)
        for name, text in embedded().items():
            path = self.headers / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def tool(self, name: str, *arguments: str) -> str:
        """Return what a tool of LLVM prints."""
        command = [str(self.root / LLVM / "bin" / name), *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=self.environment,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{name} {arguments[-1]}: not done after {LIMIT:.0f} s") from None
        if done.returncode != 0:
            raise RuntimeError(f"{name} {arguments[-1]}: {done.stderr[-4000:]}")
        return done.stdout

    def compile(self, text: str, architecture: str, code: Path, exact: bool = False) -> None:
        """Compile a text to `code`; `exact`: no product is fused with a sum."""
        source = code.with_suffix(".hip")
        source.write_text(HEAD + text + TAIL, encoding="utf-8")
        more = ["-ffp-contract=off"] if exact else []
        for file in self._bitcode(architecture):
            more += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(file)]
        self.tool(
            "clang",
            *OPTIONS,
            f"--offload-arch={architecture}",
            *more,
            *("-I", str(self.headers), "-o", str(code), str(source)),
        )

    def _bitcode(self, architecture: str) -> list[Path]:
        """Return the libraries of mathematics, and what they are told of the GPU."""
        number = architecture.removeprefix("gfx")
        names = [
            *("ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off"),
            *("oclc_correctly_rounded_sqrt_on", "oclc_wavefrontsize64_on", "oclc_abi_version_500"),
        ]
        folder = self.root / BITCODE
        own = folder / f"oclc_isa_version_{number}.bc"
        if not own.exists():
            own = self.folder / own.name
        return [*(folder / f"{name}.bc" for name in names), own]

    def _make_isa_version(self, number: str) -> None:
        """Make the constant that packages older than a GPU lack: its number in ROCm's libraries."""
        own = self.folder / f"oclc_isa_version_{number}.bc"
        if own.exists():
            return
        like = self.root / BITCODE / "oclc_isa_version_90a.bc"
        text = self.tool("llvm-dis", "-o", "-", str(like))
        value = 1000 * int(number[0]) + 100 * int(number[1]) + int(number[2], 16)
        lines = [
            f"@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) "
            f"constant i32 {value}, align 4"
            if line.startswith("@__oclc_ISA_version")
            else line
            for line in text.splitlines()
        ]
        source = own.with_suffix(".ll")
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.tool("llvm-as", "-o", str(own), str(source))
