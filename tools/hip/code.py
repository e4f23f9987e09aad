"""What machine code of AMD's GPUs takes and does: registers, memory, and accesses past caches.

Names of instructions: LLVM, "User Guide for AMDGPU Backend", memory model of gfx90a and gfx942.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.hip.compiler import Compiler

SIMDS, REGISTERS, WAVE = 4, 512, 64  # of a compute unit; of a lane of one; threads in lockstep
LDS = 65536  # bytes of shared memory of a block
# Bytes of memory that a thread may have of its own: what indexes by a number that is not known.
PRIVATE = 1024
SPILLS = 96  # registers of a thread that a kernel may keep in memory, of some 250
# Write-backs of a whole cache for other blocks of the GPU that a kernel may have, in all of its
# branches, and innermost loops with one: that of a stencil's passes, once a pass.
WRITE_BACKS, LOOPS_WITH_ONE = 40, 1
_NUMBERS = (
    *("vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count"),
    *("group_segment_fixed_size", "private_segment_fixed_size", "max_flat_workgroup_size"),
    "wavefront_size",
)
# Of stores and loads that other GPUs see or have made; of a whole cache that is written back for
# them: only memory that they do not cache is shared with them, so that there is nothing to write.
_FAR = {"gfx90a": {"store": "", "load": "glc"}, "gfx942": {"store": "sc0 sc1", "load": "sc0 sc1"}}
_WRITE_BACK = {"gfx90a": r"buffer_wbl2", "gfx942": r"buffer_wbl2 sc0 sc1"}
_WHOLE_CACHE = re.compile(r"buffer_(wbl2|inv|wbinvl1|invl2)")


@dataclass
class Kernel:
    """What the notes of a code object say of a kernel."""

    name: str
    numbers: dict[str, int]

    def faults(self) -> list[str]:
        """Return what is over its bound."""
        n, found = self.numbers, []
        waves = -(-n["max_flat_workgroup_size"] // (WAVE * SIMDS))  # of a SIMD, of one block
        registers = -(-n["vgpr_count"] // 8) * 8
        if registers * waves > REGISTERS:
            found.append(f"{registers} registers: a block of {waves} waves a SIMD finds no room")
        if n["vgpr_spill_count"] > SPILLS:
            found.append(f"{n['vgpr_spill_count']} registers spilled")
        if n["private_segment_fixed_size"] > PRIVATE:
            found.append(f"{n['private_segment_fixed_size']} bytes of memory for each thread")
        if n["group_segment_fixed_size"] > LDS:
            found.append(f"{n['group_segment_fixed_size']} bytes of shared memory")
        if n["wavefront_size"] != WAVE:
            found.append(f"waves of {n['wavefront_size']} threads")
        return [f"{self.name}: {fault}" for fault in found]


def kernels_of(compiler: Compiler, code: Path) -> list[Kernel]:
    """Return the kernels of a code object, by its notes."""
    found = []
    notes = compiler.tool("llvm-readelf", "--notes", str(code))
    for part in re.split(r"^  - \.", notes, flags=re.M)[1:]:
        name = re.search(r"^    \.name: +(\S+)", part, re.M)
        if name is None:
            continue
        numbers = {
            key: int(value)
            for key, value in re.findall(r"\.(\w+): +(\d+)$", part, re.M)
            if key in _NUMBERS
        }
        numbers.setdefault("agpr_count", 0)
        found.append(Kernel(name[1], numbers))
    return found


@dataclass
class Instructions:
    """The instructions of a code object."""

    architecture: str
    lines: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)
    """First and last place of each loop."""

    def count(self, pattern: str) -> int:
        return sum(re.match(pattern, line) is not None for line in self.lines)

    def is_far_load(self, line: str) -> bool:
        return line.startswith("global_load") and line.endswith(_FAR[self.architecture]["load"])

    def faults(self) -> list[str]:
        """Return what would write back whole caches, or throw them away where threads look."""
        found = []
        if number := self.count(_WRITE_BACK[self.architecture]):
            found.append(f"{number} write-backs of a whole cache for other GPUs")
        if (number := self.count(r"buffer_wbl2")) > WRITE_BACKS:
            found.append(f"{number} write-backs of a whole cache for blocks of this GPU")
        with_one = 0
        for first, last in self._innermost():
            here = [
                line
                for line, place in zip(self.lines, self.places, strict=True)
                if first <= place <= last
            ]
            with_one += any(line.startswith("buffer_wbl2") for line in here)
            whole = [line for line in here if _WHOLE_CACHE.match(line)]
            if whole and any(self.is_far_load(line) for line in here):
                found.append(f"a loop that looks for messages has {whole[0]} at {first:#x}")
        if with_one > LOOPS_WITH_ONE:
            found.append(f"{with_one} innermost loops write a whole cache back")
        return found

    def _innermost(self) -> list[tuple[int, int]]:
        return [
            loop
            for loop in self.loops
            if not any(
                other != loop and loop[0] <= other[0] and other[1] <= loop[1]
                for other in self.loops
            )
        ]


def instructions_of(compiler: Compiler, code: Path, architecture: str) -> Instructions:
    """Return the instructions of a code object, without their addresses."""
    found = Instructions(architecture)
    symbols: dict[str, int] = {}
    jumps: list[tuple[int, str, int]] = []
    for line in compiler.tool("llvm-objdump", "-d", str(code)).splitlines():
        if begin := re.match(r"([0-9a-f]+) <([^>]+)>:", line):
            symbols[begin[2]] = int(begin[1], 16)
        elif part := re.match(
            r"\t(.*?)\s*// ([0-9A-F]+): [0-9A-F ]+(?:<(\S+?)(?:\+(0x\w+))?>)?$", line
        ):
            found.lines.append(part[1])
            found.places.append(int(part[2], 16))
            if part[3] and part[1].startswith(("s_cbranch", "s_branch")):
                jumps.append((found.places[-1], part[3], int(part[4] or "0", 16)))
    for place, symbol, offset in jumps:
        target = symbols.get(symbol, 0) + offset
        if target <= place:
            found.loops.append((target, place))
    return found
