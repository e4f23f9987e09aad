"""Where NCCL's library lies, for the host-driven baselines."""

from __future__ import annotations

from cpufree.host import find_nccl

find = find_nccl
