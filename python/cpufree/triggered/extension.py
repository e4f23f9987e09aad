"""The compiled part of triggered operations, and what it has here."""

from __future__ import annotations

from types import ModuleType

from cpufree import env
from cpufree.extension import load_part

BACK_ENDS = ("thread", "libfabric", "libfabric_queue")
GPU_BACK_ENDS = ("copy_engine", "on_stream", "block", "proxy")


def load_extension() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    return load_part("_triggered", "triggered operations")


def load_gpu_extension() -> ModuleType:
    """Return the extension for GPUs, with CUDA's settings for it; UnsupportedError without it."""
    env.prepare_triggers_on_gpus()
    otherwise = "build it with nvcc: pip install . -C cmake.define.CPUFREE_CUDA=ON"
    return load_part("_triggered_gpu", "triggered operations on GPUs", otherwise)


def missing_back_ends() -> dict[str, str]:
    """Return the back ends that this build lacks, and why."""
    reason = load_extension().libfabric_missing()
    return dict.fromkeys(BACK_ENDS[1:], reason) if reason else {}
