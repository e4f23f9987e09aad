// Generated kernels from Python: addresses in, outcome out.
#include "cpufree/bindings/core/program.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cpufree/bindings/team.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/launch/cpu/process_heaps.hpp"
#include "cpufree/programs/cpu/cpu_program.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

// Addresses are those of memory that the caller keeps: of the kernel, of a heap for each PE, and of
// the tables of its arguments.
nb::tuple run_program(std::uintptr_t kernel, const std::vector<std::uintptr_t>& heaps,
                      const std::vector<std::uintptr_t>& tables, double wait_limit,
                      const nb::object& progress, int blocks, const nb::object& team,
                      std::int64_t leave, const nb::object& trace) {
  require(kernel != 0 && !heaps.empty() && tables.size() == 4, "a kernel, heaps and four tables");
  const std::shared_ptr<Team> members = team_of(team);
  ProgramPlace place{{}, blocks, members.get(), leave, trace_spec_of(trace)};
  for (const std::uintptr_t heap : heaps) place.heaps.push_back(reinterpret_cast<std::byte*>(heap));
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
    outcome =
        run_cpu_program(reinterpret_cast<ProgramKernel>(kernel), place, args, wait_limit, tell);
  }
  return nb::make_tuple(outcome.seconds, outcome.stopped,
                        dict_of_trace(outcome.trace ? &*outcome.trace : nullptr));
}

// Heaps of a program's PEs, one in each process of a team, seen by all of them.
class ProgramHeaps {
 public:
  ProgramHeaps(const nb::object& team, std::size_t bytes) : team_(team_of(team)) {
    const nb::gil_scoped_release release;
    heaps_ = std::make_unique<CpuHeaps>(*team_, bytes);
  }
  std::vector<std::uintptr_t> bases() const {
    std::vector<std::uintptr_t> found;
    for (int pe = 0; pe < team_->size(); ++pe)
      found.push_back(reinterpret_cast<std::uintptr_t>(heaps_->base(pe)));
    return found;
  }

 private:
  std::shared_ptr<Team> team_;
  std::unique_ptr<CpuHeaps> heaps_;
};

}  // namespace

void bind_programs(nb::module_& m) {
  m.def("run_program", &run_program, nb::arg("kernel"), nb::arg("heaps"), nb::arg("tables"),
        nb::arg("wait_limit"), nb::arg("progress").none(), nb::arg("blocks") = 1,
        nb::arg("team") = nb::none(), nb::arg("leave") = 0, nb::arg("trace") = nb::none());
  nb::class_<ProgramHeaps>(m, "ProgramHeaps")
      .def(nb::init<const nb::object&, std::size_t>(), nb::arg("team"), nb::arg("bytes"))
      .def_prop_ro("bases", &ProgramHeaps::bases);
}

}  // namespace cpufree
