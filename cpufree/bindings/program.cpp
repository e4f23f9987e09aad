// Generated kernels from Python: addresses in, outcome out.
#include "cpufree/bindings/program.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "cpufree/systems/program/cpu_program.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

// Addresses are those of memory that the caller keeps: of the kernel, of a heap for each PE, and of
// the tables of its arguments.
nb::tuple run_program(std::uintptr_t kernel, const std::vector<std::uintptr_t>& heaps,
                      const std::vector<std::uintptr_t>& tables, double wait_limit,
                      const nb::object& progress, int blocks) {
  require(kernel != 0 && !heaps.empty() && tables.size() == 4, "a kernel, heaps and four tables");
  std::vector<std::byte*> bases;
  for (const std::uintptr_t heap : heaps) bases.push_back(reinterpret_cast<std::byte*>(heap));
  programs::Args args{};
  args.numbers = reinterpret_cast<const std::int64_t*>(tables[0]);
  args.scalars = reinterpret_cast<const std::int64_t*>(tables[1]);
  args.results = reinterpret_cast<std::int64_t*>(tables[2]);
  args.faults = reinterpret_cast<std::int64_t*>(tables[3]);
  Progress tell;
  if (!progress.is_none())
    tell = [&](std::int64_t turn, double value) {
      const nb::gil_scoped_acquire acquire;
      return nb::cast<bool>(progress(turn, value));
    };
  ProgramOutcome outcome;
  {
    const nb::gil_scoped_release release;
    outcome = run_cpu_program(reinterpret_cast<ProgramKernel>(kernel), bases, args, wait_limit,
                              tell, blocks);
  }
  return nb::make_tuple(outcome.seconds, outcome.stopped);
}

}  // namespace

void bind_programs(nb::module_& m) {
  m.def("run_program", &run_program, nb::arg("kernel"), nb::arg("heaps"), nb::arg("tables"),
        nb::arg("wait_limit"), nb::arg("progress").none(), nb::arg("blocks") = 1);
}

}  // namespace cpufree
