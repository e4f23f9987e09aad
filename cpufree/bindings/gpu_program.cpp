// Programs on GPUs from Python: addresses and numbers in, outcome out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "cpufree/bindings/program.hpp"
#include "cpufree/systems/program/gpu/program.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

using Sizes = std::vector<std::uint64_t>;

// Each: PE, offset, pitch, address, its pitch, width, rows.
std::vector<GpuProgramCopy> copies_of(const std::vector<Sizes>& tables) {
  std::vector<GpuProgramCopy> copies;
  for (const Sizes& t : tables) {
    require(t.size() == 7, "a copy has seven numbers");
    copies.push_back({static_cast<int>(t[0]), t[1], t[2], reinterpret_cast<std::byte*>(t[3]), t[4],
                      t[5], t[6]});
  }
  return copies;
}

nb::tuple run(GpuProgram& program, const std::vector<std::int64_t>& scalars, std::size_t results,
              double wait_limit, const nb::object& progress) {
  Progress tell;
  if (!progress.is_none())
    tell = [&](std::int64_t turn, double value) {
      const nb::gil_scoped_acquire acquire;
      return nb::cast<bool>(progress(turn, value));
    };
  std::vector<std::int64_t> found(results), faults(2);
  ProgramOutcome outcome;
  {
    const nb::gil_scoped_release release;
    outcome = program.run(scalars, found, faults, wait_limit, tell);
  }
  return nb::make_tuple(outcome.seconds, outcome.stopped, found, faults);
}

}  // namespace

void bind_gpu_programs(nb::module_& m) {
  nb::class_<GpuProgram>(m, "GpuProgram")
      .def_prop_ro("blocks", &GpuProgram::blocks)
      .def(
          "load",
          [](GpuProgram& p, const std::vector<Sizes>& copies) {
            const std::vector<GpuProgramCopy> all = copies_of(copies);
            const nb::gil_scoped_release release;
            p.load(all);
          },
          nb::arg("copies"))
      .def(
          "store",
          [](GpuProgram& p, const std::vector<Sizes>& copies) {
            const std::vector<GpuProgramCopy> all = copies_of(copies);
            const nb::gil_scoped_release release;
            p.store(all);
          },
          nb::arg("copies"))
      .def("run", &run, nb::arg("scalars"), nb::arg("results"), nb::arg("wait_limit"),
           nb::arg("progress").none());
  m.def(
      "make_gpu_program",
      [](const std::string& source, const std::vector<int>& devices, std::size_t heap_bytes,
         std::size_t leave_offset, int threads, int most_blocks) {
        const GpuProgramSpec spec{source, devices, heap_bytes, leave_offset, threads, most_blocks};
        const nb::gil_scoped_release release;
        return make_gpu_program(spec);
      },
      nb::arg("source"), nb::arg("devices"), nb::arg("heap_bytes"), nb::arg("leave_offset"),
      nb::arg("threads"), nb::arg("most_blocks"));
}

}  // namespace cpufree
