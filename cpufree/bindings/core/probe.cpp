// Probes of communication, of threads, processes and GPUs.
#include "cpufree/bindings/core/probe.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/probes/host/cpu.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

using Address = std::pair<std::int32_t, std::int32_t>;  // process, file

PatternOrder product_order(int tile, bool puts, bool overlapped, bool local, int warm_ups,
                           int repeats, double wait_limit) {
  PatternOrder order;
  order.kind = PatternKind::gemm;
  order.tile = tile;
  order.puts = puts;
  order.overlapped = overlapped;
  order.local = local;
  order.warm_ups = warm_ups;
  order.repeats = repeats;
  order.wait_limit = wait_limit;
  return order;
}

class PyProbe {
 public:
  // pe: the one in this process, -1: all of them. gpus: one for each PE; none: CPU threads. place:
  // of the memory of PEs on GPUs.
  PyProbe(int pes, int blocks, std::int64_t bytes, int pe, const std::vector<int>& gpus,
          int threads, const std::string& place) {
    if (!gpus.empty()) {
      const ProbePlace where = probe_place_from_name(place);
      const nb::gil_scoped_release release;
      prober_ = gpu_engine().make_gpu_prober(gpus, blocks, threads, bytes, where);
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
  PatternTimes exchange(const std::vector<std::int64_t>& bytes, int warm_ups, int repeats,
                        double wait_limit) {
    PatternOrder order;
    order.bytes = bytes;
    order.warm_ups = warm_ups;
    order.repeats = repeats;
    order.wait_limit = wait_limit;
    const nb::gil_scoped_release release;
    return prober_->run(order);
  }
  PatternTimes multiply(int tile, bool puts, bool overlapped, bool local, int warm_ups, int repeats,
                        double wait_limit) {
    const PatternOrder order =
        product_order(tile, puts, overlapped, local, warm_ups, repeats, wait_limit);
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

class PyHostProduct {
 public:
  PyHostProduct(const std::vector<int>& gpus, int most_rows) {
    const nb::gil_scoped_release release;
    product_ = gpu_engine().make_host_product(gpus, most_rows);
  }
  PatternTimes multiply(int tile, bool puts, bool overlapped, bool local, int warm_ups, int repeats,
                        double wait_limit) {
    const PatternOrder order =
        product_order(tile, puts, overlapped, local, warm_ups, repeats, wait_limit);
    const nb::gil_scoped_release release;
    return product_->run(order);
  }

 private:
  std::unique_ptr<HostProduct> product_;
};

class PyHostWay {
 public:
  PyHostWay(const std::string& way, const std::vector<int>& gpus, std::int64_t bytes,
            const std::string& library, const nb::bytes& handle, const std::string& kernels,
            int rank) {
    const HostWaySpec spec{
        way, gpus, bytes, library, std::string(handle.c_str(), handle.size()), kernels, rank};
    const nb::gil_scoped_release release;
    way_ = gpu_engine().make_host_way(spec);
  }
  std::vector<double> times(const std::string& mode, std::int64_t bytes, int messages, int warm_ups,
                            int repeats, double wait_limit) {
    const HostOrder order{mode, bytes, messages, warm_ups, repeats, wait_limit};
    const nb::gil_scoped_release release;
    return way_->times(order);
  }

 private:
  std::unique_ptr<HostWay> way_;
};

class PyIpcMemory {
 public:
  PyIpcMemory(int gpu, std::int64_t bytes) : memory_(gpu_engine().make_ipc_memory(gpu, bytes)) {}
  nb::bytes handle() const {
    const std::string words = memory_->handle();
    return nb::bytes(words.data(), words.size());
  }

 private:
  std::unique_ptr<IpcMemory> memory_;
};

}  // namespace

void bind_probes(nb::module_& m) {
  nb::class_<PyProbe>(m, "Probe")
      .def(
          nb::init<int, int, std::int64_t, int, const std::vector<int>&, int, const std::string&>(),
          nb::arg("pes"), nb::arg("blocks"), nb::arg("bytes"), nb::arg("pe") = -1,
          nb::arg("gpus") = std::vector<int>(), nb::arg("threads") = 0, nb::arg("place") = "device")
      .def("address", &PyProbe::address)
      .def("connect", &PyProbe::connect, nb::arg("addresses"))
      .def("leave", &PyProbe::leave)
      .def("disturbances", &PyProbe::disturbances)
      .def("run", &PyProbe::run, nb::arg("way"), nb::arg("mode"), nb::arg("bytes"),
           nb::arg("messages"), nb::arg("rounds"), nb::arg("warm_ups"), nb::arg("repeats"),
           nb::arg("wait_limit"))
      .def("exchange", &PyProbe::exchange, nb::arg("bytes"), nb::arg("warm_ups"),
           nb::arg("repeats"), nb::arg("wait_limit"))
      .def("multiply", &PyProbe::multiply, nb::arg("tile"), nb::arg("puts"), nb::arg("overlapped"),
           nb::arg("local"), nb::arg("warm_ups"), nb::arg("repeats"), nb::arg("wait_limit"));
  nb::class_<PyHostWay>(m, "HostWay")
      .def(nb::init<const std::string&, const std::vector<int>&, std::int64_t, const std::string&,
                    const nb::bytes&, const std::string&, int>(),
           nb::arg("way"), nb::arg("gpus"), nb::arg("bytes"), nb::arg("library") = "",
           nb::arg("handle") = nb::bytes("", 0), nb::arg("kernels") = "", nb::arg("rank") = 0)
      .def("times", &PyHostWay::times, nb::arg("mode"), nb::arg("bytes"), nb::arg("messages"),
           nb::arg("warm_ups"), nb::arg("repeats"), nb::arg("wait_limit"));
  nb::class_<PyHostProduct>(m, "HostProduct")
      .def(nb::init<const std::vector<int>&, int>(), nb::arg("gpus"), nb::arg("most_rows"))
      .def("multiply", &PyHostProduct::multiply, nb::arg("tile"), nb::arg("puts"),
           nb::arg("overlapped"), nb::arg("local"), nb::arg("warm_ups"), nb::arg("repeats"),
           nb::arg("wait_limit"));
  m.def(
      "nvshmem_id",
      [](const std::string& library) {
        const std::string id = gpu_engine().make_shmem_way_id(library);
        return nb::bytes(id.data(), id.size());
      },
      nb::arg("library") = "");
  nb::class_<PyIpcMemory>(m, "IpcMemory")
      .def(nb::init<int, std::int64_t>(), nb::arg("gpu"), nb::arg("bytes"))
      .def("handle", &PyIpcMemory::handle);
}

}  // namespace cpufree
