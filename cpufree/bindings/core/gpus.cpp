// The GPUs of this machine, and the start of libraries on them.
#include "cpufree/bindings/core/gpus.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/bindings/team.hpp"
#include "cpufree/plugins/cpu/kernel_source.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

nb::list describe_gpus() {
  std::vector<GpuInfo> found;
  {
    const nb::gil_scoped_release release;  // the driver may start first
    found = gpu_engine().list_gpus();
  }
  nb::list gpus;
  for (const GpuInfo& gpu : found) {
    nb::dict d;
    d["index"] = gpu.index;
    d["name"] = gpu.name;
    d["memory_bytes"] = gpu.memory_bytes;
    d["multiprocessors"] = gpu.multiprocessors;
    d["compute_capability"] = nb::make_tuple(gpu.major, gpu.minor);
    d["kind"] = gpu.kind;
    d["l2_bytes"] = gpu.l2_bytes;
    d["uuid"] = gpu.uuid;
    gpus.append(d);
  }
  return gpus;
}

void start_remote_for(const nb::object& team, const std::string& engine, const std::string& library,
                      int gpu, std::size_t bytes) {
  const std::shared_ptr<Team> members = team_of(team);
  const nb::gil_scoped_release release;
  gpu_engine().start_remote(members, {engine, library}, gpu, bytes);
}

nb::dict litmus(const nb::object& team, const std::string& engine, const std::string& library,
                const std::string& kernels, int gpu, int node_size) {
  LitmusSpec spec;
  spec.team = team_of(team);
  spec.library = {engine, library};
  spec.kernels = kernels;
  spec.gpu = gpu;
  spec.node_size = node_size;
  Litmus found;
  {
    const nb::gil_scoped_release release;
    found = gpu_engine().run_litmus(spec);
  }
  nb::dict d;
  d["nodes"] = found.nodes;
  d["messages"] = found.messages;
  d["wrong"] = found.wrong;
  return d;
}

// Kernels are going to be compiled, some of them ahead: Python's end waits for these threads,
// before libraries are torn down.
void set_compiler(const std::string& library, const std::vector<std::string>& caches,
                  const std::string& shipped) {
  {
    const nb::gil_scoped_release release;  // others may be compiling
    gpu_engine().set_kernel_compiler(library, caches, shipped);
  }
  static bool told = false;  // under the GIL
  if (std::exchange(told, true)) return;
  const auto finish = nb::cpp_function([] { gpu_engine().finish_compiling(); },
                                       nb::call_guard<nb::gil_scoped_release>());
  nb::module_::import_("atexit").attr("register")(finish);
}

}  // namespace

void bind_gpus(nb::module_& m) {
  m.def("gpu_vendor", [] { return gpu_engine().gpu_vendor(); });
  m.def("cuda_runtime", [] { return gpu_engine().cuda_runtime(); });
  m.def("gpus", &describe_gpus);
  m.def("gpu_note", [] { return gpu_engine().gpu_note(); });
  m.def(
      "gpu_free_bytes", [](int index) { return gpu_engine().gpu_free_bytes(index); },
      nb::arg("index"),
      nb::call_guard<nb::gil_scoped_release>());  // CUDA may start first
  m.def(
      "gpu_is_started", [](int index) { return gpu_engine().gpu_is_started(index); },
      nb::arg("index"));
  m.def(
      "peer_problem", [](const std::vector<int>& gpus) { return gpu_engine().peer_problem(gpus); },
      nb::arg("gpus"));
  m.def("set_kernel_compiler", &set_compiler, nb::arg("library"), nb::arg("caches"),
        nb::arg("shipped"));
  m.def(
      "ship_kernels",
      [](const std::string& architecture, const std::string& folder) {
        return gpu_engine().ship_kernels(architecture, folder);
      },
      nb::arg("architecture"), nb::arg("folder"), nb::call_guard<nb::gil_scoped_release>());
  m.def("kernels_compiling", [] { return gpu_engine().kernels_compiling(); });
  m.def("kernel_seconds", [] { return gpu_engine().kernel_seconds() + cpu_kernel_seconds(); });
  m.def("kernels_compiled", [] { return gpu_engine().kernels_compiled(); });
  m.def(
      "kernel_compiler", [] { return gpu_engine().kernel_compiler(); },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("start_remote", &start_remote_for, nb::arg("team"), nb::arg("engine"), nb::arg("library"),
        nb::arg("gpu"), nb::arg("bytes"));
  m.def(
      "await_remote", [](const std::string& engine) { return gpu_engine().await_remote(engine); },
      nb::arg("engine"), nb::call_guard<nb::gil_scoped_release>());
  m.def("litmus", &litmus, nb::arg("team"), nb::arg("engine"), nb::arg("library"),
        nb::arg("kernels"), nb::arg("gpu"), nb::arg("node_size"));
}

}  // namespace cpufree
