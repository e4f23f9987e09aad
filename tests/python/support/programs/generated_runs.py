"""Generated kernels where faults show: under random schedules, and under ThreadSanitizer.

Both take a kernel's text, and what the CPU engine takes: heaps, tables, blocks of a PE.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from paths import ROOT

from cpufree.compiler.build import FLAGS
from cpufree.cpu_kernels import SHARED
from cpufree.env import BuildEnv

_FIBERS = """
#include "cpufree/engines/cpu_fibers/port.hpp"
{text}
extern "C" bool run_fibers(std::byte* const* heaps, int pes, int blocks,
                           const cpufree::programs::Args* args, std::uint64_t seed) {{
  namespace fibers = cpufree::cpu_fibers;
  fibers::Config config;
  config.pes = pes;
  config.blocks = blocks;
  config.heaps = heaps;
  config.seed = seed;
  fibers::Machine* machine = nullptr;
  fibers::Machine all(config, [&](int pe, int block) {{
    fibers::Port port(*machine, pe, block);
    run(port, *args, heaps[pe]);
  }});
  machine = &all;
  return all.run();
}}
"""
_THREADS = """
#include <fstream>
#include <memory>
#include <thread>
#include <vector>
#include "cpufree/engines/cpu_threads/port.hpp"
{text}
#include "cpufree/engines/cpu_threads/port.cpp"

namespace {{
// A block on a thread of its own.
struct OwnThread final : cpufree::cpu_threads::Seat {{
  OwnThread() {{ called = &never; }}
  bool pass(std::uint32_t) override {{
    std::this_thread::yield();
    return true;
  }}
  void move() override {{}}
  std::atomic<bool> never{{false}};
}};
}}  // namespace

// Numbers of PEs, blocks, bytes of a heap, numbers, scalars, results; then these, and the heaps.
int main(int, char** words) {{
  std::ifstream in(words[1], std::ios::binary);
  const auto read = [&](auto* to, std::size_t count) {{
    in.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof *to));
  }};
  std::int64_t sizes[6];
  read(sizes, 6);
  const auto [pes, blocks, bytes, numbers, scalars, results] = sizes;
  std::vector<std::int64_t> tables[4];
  const std::int64_t lengths[] = {{numbers, scalars, results, 2 * pes}};
  for (int k = 0; k < 4; ++k) tables[k].resize(static_cast<std::size_t>(lengths[k]));
  read(tables[0].data(), tables[0].size());
  read(tables[1].data(), tables[1].size());
  std::vector<std::byte*> heaps;
  for (int pe = 0; pe < pes; ++pe) {{
    heaps.push_back(static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256)));
    read(reinterpret_cast<char*>(heaps.back()), static_cast<std::size_t>(bytes));
  }}
  cpufree::cpu_threads::Shared shared;
  shared.pes = static_cast<int>(pes);
  shared.blocks = static_cast<int>(blocks);
  shared.heaps = heaps.data();
  shared.wait_limit = std::chrono::seconds(30);
  shared.records.assign(static_cast<std::size_t>(pes * blocks), {{}});
  const cpufree::programs::Args args{{tables[0].data(), tables[1].data(), tables[2].data(),
                                     tables[3].data()}};
  std::vector<std::thread> threads;
  for (int pe = 0; pe < pes; ++pe)
    for (int block = 0; block < blocks; ++block)
      threads.emplace_back([&, pe, block] {{
        OwnThread seat;
        cpufree::cpu_threads::Port port(shared, pe, block, &seat);
        run(port, args, heaps[static_cast<std::size_t>(pe)]);
      }});
  for (auto& thread : threads) thread.join();
  std::ofstream out(words[2], std::ios::binary);
  const auto write = [&](const auto* from, std::size_t count) {{
    out.write(reinterpret_cast<const char*>(from),
              static_cast<std::streamsize>(count * sizeof *from));
  }};
  write(tables[2].data(), tables[2].size());
  write(tables[3].data(), tables[3].size());
  for (std::byte* heap : heaps)
    write(reinterpret_cast<char*>(heap), static_cast<std::size_t>(bytes));
}}
"""


class Args(ctypes.Structure):
    """The kernel's arguments (cpufree/programs/args.hpp)."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("numbers", "scalars", "results", "faults")]


def _compile(source: Path, made: Path, *options: str) -> None:
    flags = [f for f in (*SHARED, *FLAGS) if f not in ("-O3", "-fPIC", "-shared")]
    command = [*BuildEnv.read().compiler, *flags, f"-I{ROOT}", str(source), "-o", str(made)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[:4000]


class UnderSchedules:
    """Runs a kernel on fibers, in an order that a seed draws, with late stores."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed

    def __call__(self, text: str, heaps: list[Any], tables: list[int], blocks: int) -> None:
        function = _built_for_fibers(text, self.folder)
        bases = (ctypes.c_void_p * len(heaps))(*(h.ctypes.data for h in heaps))
        args = Args(*tables)
        ended = function(bases, len(heaps), blocks, ctypes.byref(args), ctypes.c_uint64(self.seed))
        assert ended, f"seed {self.seed}: a wait does not end"


@cache
def _built_for_fibers(text: str, folder: Path) -> Any:
    source, made = folder / "fibers.cpp", folder / "fibers.so"
    source.write_text(_FIBERS.format(text=text))
    schedule = ROOT / "cpufree/engines/cpu_fibers/schedule.cpp"
    _compile(source, made, str(schedule), "-O1", "-fPIC", "-shared")
    function = ctypes.CDLL(str(made)).run_fibers
    function.restype = ctypes.c_bool
    return function


class UnderThreadSanitizer:
    """Runs a kernel in a program of its own, in which ThreadSanitizer looks for races."""

    def __init__(self, folder: Path, counts: tuple[int, int, int]) -> None:
        self.folder, self.counts = folder, counts
        """`counts`: of numbers, scalars, results."""

    def __call__(self, text: str, heaps: list[Any], tables: list[int], blocks: int) -> None:
        source, made = self.folder / "threads.cpp", self.folder / "threads"
        source.write_text(_THREADS.format(text=text))
        _compile(source, made, "-O1", "-g1", "-fsanitize=thread", "-pthread")
        given, taken = self.folder / "in", self.folder / "out"
        size = len(heaps[0])
        views = [_words(address, n) for address, n in zip(tables, self.counts, strict=False)]
        sizes = np.array([len(heaps), blocks, size, *self.counts], np.int64)
        parts = [sizes, *views[:2], *heaps]
        given.write_bytes(b"".join(part.tobytes() for part in parts))
        done = subprocess.run(
            [str(made), str(given), str(taken)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[:3000]
        out = np.frombuffer(taken.read_bytes(), np.uint8)
        results = self.counts[2]
        views[2][:] = out[: 8 * results].view(np.int64)
        assert not out[8 * results :][: 16 * len(heaps)].any(), "a fault"
        rest = out[8 * results + 16 * len(heaps) :]
        for heap, values in zip(heaps, rest.reshape(len(heaps), size), strict=True):
            heap[:] = values


def _words(address: int, count: int) -> Any:
    return np.frombuffer((ctypes.c_int64 * count).from_address(address), np.int64)
