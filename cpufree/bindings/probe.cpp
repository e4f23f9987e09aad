// Probes of communication, of threads, processes and GPUs.
#include "cpufree/bindings/probe.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/systems/probes/cpu.hpp"
#include "cpufree/systems/probes/gpu/prober.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

using Address = std::pair<std::int32_t, std::int32_t>;  // process, file

class PyProbe {
 public:
  // pe: the one in this process, -1: all of them. gpus: one for each PE; none: CPU threads.
  PyProbe(int pes, int blocks, std::int64_t bytes, int pe, const std::vector<int>& gpus,
          int threads) {
    if (!gpus.empty()) {
      const nb::gil_scoped_release release;
      prober_ = make_gpu_prober(gpus, blocks, threads, bytes);
      return;
    }
    auto made = pe < 0 ? std::make_unique<CpuProber>(pes, blocks, bytes)
                       : std::make_unique<CpuProber>(pes, blocks, bytes, pe);
    cpu_ = made.get();
    prober_ = std::move(made);
  }

  Address address() const {
    const auto found = cpu().address();
    return {found.process, found.file};
  }
  void connect(const std::vector<Address>& addresses) {
    std::vector<cpu_processes::SegmentAddress> all;
    for (const auto& [process, file] : addresses) all.push_back({process, file});
    cpu().connect(all);
  }
  void leave() { cpu().leave(); }
  long disturbances() const { return cpu_ == nullptr ? 0 : cpu_->disturbances(); }
  std::vector<double> run(const std::string& way, const std::string& mode, std::int64_t bytes,
                          int messages, int rounds, int warm_ups, int repeats, double wait_limit) {
    const ProbeOrder order{probe_way_from_name(way),
                           probe_mode_from_name(mode),
                           bytes,
                           messages,
                           rounds,
                           warm_ups,
                           repeats,
                           wait_limit};
    const nb::gil_scoped_release release;
    return prober_->run(order);
  }

 private:
  CpuProber& cpu() const {
    require(cpu_ != nullptr, "PEs on GPUs are all in one process");
    return *cpu_;
  }

  std::unique_ptr<Prober> prober_;
  CpuProber* cpu_ = nullptr;
};

}  // namespace

void bind_probes(nb::module_& m) {
  nb::class_<PyProbe>(m, "Probe")
      .def(nb::init<int, int, std::int64_t, int, const std::vector<int>&, int>(), nb::arg("pes"),
           nb::arg("blocks"), nb::arg("bytes"), nb::arg("pe") = -1,
           nb::arg("gpus") = std::vector<int>(), nb::arg("threads") = 0)
      .def("address", &PyProbe::address)
      .def("connect", &PyProbe::connect, nb::arg("addresses"))
      .def("leave", &PyProbe::leave)
      .def("disturbances", &PyProbe::disturbances)
      .def("run", &PyProbe::run, nb::arg("way"), nb::arg("mode"), nb::arg("bytes"),
           nb::arg("messages"), nb::arg("rounds"), nb::arg("warm_ups"), nb::arg("repeats"),
           nb::arg("wait_limit"));
}

}  // namespace cpufree
