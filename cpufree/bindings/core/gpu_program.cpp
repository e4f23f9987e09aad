// Programs on GPUs from Python: addresses and numbers in, outcome out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "cpufree/bindings/core/program.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

using Sizes = std::vector<std::uint64_t>;

// Each: PE, offset, pitch, address, its pitch, width, rows.
std::vector<GpuProgramCopy> copies_of(const std::vector<Sizes>& tables) {
  std::vector<GpuProgramCopy> copies;
  for (const Sizes& t : tables) {
    require(t.size() == 7, "a copy has seven numbers");
    copies.push_back(
        {static_cast<int>(t[0]), t[1], t[2], reinterpret_cast<std::byte*>(t[3]), t[4], t[5], t[6]});
  }
  return copies;
}

nb::tuple run(GpuProgram& program, const std::vector<std::int64_t>& scalars, std::size_t results,
              double wait_limit, const nb::object& progress, const nb::object& trace) {
  const TraceSpec how = trace_spec_of(trace).value_or(TraceSpec{});
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
    outcome = program.run(scalars, found, faults, wait_limit, tell, how);
  }
  return nb::make_tuple(outcome.seconds, outcome.stopped, found, faults,
                        dict_of_trace(outcome.trace ? &*outcome.trace : nullptr));
}

using Segment = std::pair<std::vector<Sizes>, std::int64_t>;

HostedCommand command_of(const Sizes& t) {
  HostedCommand c;
  require(!t.empty() && t[0] <= 2, "a command begins with its kind");
  c.kind = static_cast<HostedCommand::Kind>(t[0]);
  if (c.kind == HostedCommand::Kind::meet) return c;
  require(t.size() == (c.kind == HostedCommand::Kind::launch ? 5U : 6U), "a whole command");
  c.pe = static_cast<int>(t[1]);
  if (c.kind == HostedCommand::Kind::launch) {
    c.kernel = static_cast<int>(t[2]), c.blocks = static_cast<int>(t[3]), c.arguments = t[4];
  } else {
    c.to_pe = static_cast<int>(t[2]), c.from = t[3], c.to = t[4], c.bytes = t[5];
  }
  return c;
}

void prepare(HostedProgram& program, const std::vector<Segment>& segments,
             const nb::bytes& arguments, std::size_t size) {
  std::vector<HostedSegment> all;
  for (const auto& [commands, repeats] : segments) {
    HostedSegment& segment = all.emplace_back();
    segment.repeats = repeats;
    for (const Sizes& c : commands) segment.commands.push_back(command_of(c));
  }
  const std::string text(arguments.c_str(), arguments.size());
  const nb::gil_scoped_release release;
  program.prepare(all, text, size);
}

// A class of programs, with the copies to and from the memory of its PEs.
template <class Program>
nb::class_<Program> copying(nb::module_& m, const char* name) {
  nb::class_<Program> bound(m, name);
  bound
      .def(
          "load",
          [](Program& p, const std::vector<Sizes>& copies) {
            const std::vector<GpuProgramCopy> all = copies_of(copies);
            const nb::gil_scoped_release release;
            p.load(all);
          },
          nb::arg("copies"))
      .def(
          "store",
          [](Program& p, const std::vector<Sizes>& copies) {
            const std::vector<GpuProgramCopy> all = copies_of(copies);
            const nb::gil_scoped_release release;
            p.store(all);
          },
          nb::arg("copies"));
  return bound;
}

}  // namespace

void bind_gpu_programs(nb::module_& m) {
  copying<GpuProgram>(m, "GpuProgram")
      .def_prop_ro("blocks", &GpuProgram::blocks)
      .def("run", &run, nb::arg("scalars"), nb::arg("results"), nb::arg("wait_limit"),
           nb::arg("progress").none(), nb::arg("trace") = nb::none());
  copying<HostedProgram>(m, "HostedProgram")
      .def("prepare", &prepare, nb::arg("segments"), nb::arg("arguments"), nb::arg("size"))
      .def(
          "run",
          [](HostedProgram& p, double wait_limit) {
            std::vector<std::int64_t> faults;
            double seconds = 0.0;
            {
              const nb::gil_scoped_release release;
              seconds = p.run(faults, wait_limit);
            }
            return nb::make_tuple(seconds, faults);
          },
          nb::arg("wait_limit"));
  m.def(
      "make_hosted_program",
      [](const std::string& source, int kernels, const std::vector<int>& devices,
         std::size_t heap_bytes, int threads) {
        const nb::gil_scoped_release release;
        return gpu_engine().make_hosted_program(source, kernels, devices, heap_bytes, threads);
      },
      nb::arg("source"), nb::arg("kernels"), nb::arg("devices"), nb::arg("heap_bytes"),
      nb::arg("threads"));
  m.def(
      "make_gpu_program",
      [](const std::string& source, const std::vector<int>& devices, std::size_t heap_bytes,
         std::size_t leave_offset, int threads, std::size_t thread_bytes, int most_blocks,
         bool traced) {
        const GpuProgramSpec spec{source,  devices,      heap_bytes,  leave_offset,
                                  threads, thread_bytes, most_blocks, traced};
        const nb::gil_scoped_release release;
        return gpu_engine().make_gpu_program(spec);
      },
      nb::arg("source"), nb::arg("devices"), nb::arg("heap_bytes"), nb::arg("leave_offset"),
      nb::arg("threads"), nb::arg("thread_bytes"), nb::arg("most_blocks"),
      nb::arg("traced") = false);
}

}  // namespace cpufree
