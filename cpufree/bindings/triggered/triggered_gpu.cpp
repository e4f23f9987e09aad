// Triggered operations on GPUs from Python: studies, and domains of PEs on GPUs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "cpufree/baselines/drivers/vectors.hpp"
#include "cpufree/bindings/errors.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/bindings/triggered/triggered.hpp"
#include "cpufree/triggered/gpu/domain.hpp"
#include "cpufree/triggered/gpu/scripts.hpp"
#include "cpufree/triggered/gpu/studies.hpp"

namespace nb = nanobind;

namespace cpufree::triggered {
namespace {

using Devices = std::vector<int>;

template <class F>
auto without_gil(F&& call) {
  const nb::gil_scoped_release release;
  return call();
}

class PyGpuDomain : public DomainBinding<GpuDomain> {
 public:
  PyGpuDomain(const nb::dict& sizes, const std::string& back_end, double wait_limit, bool times,
              const Devices& gpus)
      : DomainBinding(config_of(sizes, wait_limit, times), gpus, back_end) {}

  // A copy of a buffer's bytes on a PE.
  nb::object view(int pe, std::uint64_t offset, std::size_t bytes) const {
    return to_numpy(domain_.read(pe, offset, bytes));
  }
  void write(int pe, std::uint64_t offset, const Doubles& values) {
    domain_.write(pe, offset, values.data(), values.size());
  }
};

// (rows as in MessageTimes, errors of the clocks in seconds: host, pair).
nb::tuple messages(const Devices& gpus, const std::string& path, const std::string& back_end,
                   std::uint64_t bytes, int rounds, int blocks, double before, double after,
                   const std::string& order) {
  GpuMessageStudy study;
  study.devices = gpus;
  study.path = path_named(path);
  study.back_end = back_end;
  study.bytes = bytes;
  study.rounds = rounds;
  study.blocks = blocks;
  study.before = before;
  study.after = after;
  study.order = order_named(order);
  const GpuMessages all = without_gil([&] { return measure_gpu_messages(study, check_signals); });
  std::vector<double> rows;
  for (const MessageTimes& t : all.times)
    rows.insert(rows.end(),
                {t.begun, t.ready, t.sent, t.ended, t.observed, t.nic_begun, t.nic_ended, t.seen});
  return nb::make_tuple(to_numpy(std::move(rows)).attr("reshape")(-1, 8), all.host_error,
                        all.pair_error);
}

// Rows of alone, beside, all_seen, one_copy, plain_copy.
nb::object overlap(const Devices& gpus, const std::string& back_end, std::uint64_t bytes,
                   int copies, int tags, int rounds, double seconds) {
  OverlapStudy study;
  study.devices = gpus;
  study.back_end = back_end;
  study.bytes = bytes;
  study.copies = copies;
  study.tags = tags;
  study.rounds = rounds;
  study.seconds = seconds;
  std::vector<double> rows;
  for (const OverlapTimes& t : without_gil([&] { return measure_overlap(study, check_signals); }))
    rows.insert(rows.end(), {t.alone, t.beside, t.all_seen, t.one_copy, t.plain_copy});
  return to_numpy(std::move(rows)).attr("reshape")(-1, 5);
}

double allreduce(const Devices& gpus, const std::string& way, const std::string& by, bool single,
                 int blocks, int threads, std::int64_t count, std::uint32_t repeats) {
  require(way == "ring" || way == "direct" || way == "packets",
          "an all-reduce goes by ring, direct or packets, not " + way);
  GpuReduceStudy study;
  study.devices = gpus;
  study.way = way == "ring"     ? ReduceWay::ring
              : way == "direct" ? ReduceWay::direct
                                : ReduceWay::packets;
  study.by = by;
  study.single = single;
  study.blocks = blocks;
  study.threads = threads;
  study.count = count;
  study.repeats = repeats;
  return without_gil([&] { return measure_gpu_allreduce(study, check_signals); });
}

double collective_allreduce(const Devices& gpus, const std::string& library, bool graph,
                            bool single, std::int64_t count, int repeats) {
  const baselines::VectorSumRun run{gpus, library, graph, single, count, repeats};
  return without_gil([&] { return baselines::sum_vectors(run); });
}

template <class T>
using Plane = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Iterates in place; returns seconds.
template <class T>
double iterate(const Plane<T>& u, std::uint32_t iterations, const Devices& gpus, int blocks,
               int threads, const std::string& way, const std::string& back_end,
               double wait_limit) {
  require(way == "triggered" || way == "at_end" || way == "host",
          "halos travel triggered, at_end or host, not " + way);
  require(u.shape(1) < std::size_t{1} << 31, "a row of the grid has fewer than 2^31 points");
  GpuJacobiRun run;
  run.devices = gpus;
  run.way = way == "triggered" ? GpuJacobiWay::triggered
            : way == "at_end"  ? GpuJacobiWay::at_end
                               : GpuJacobiWay::host;
  run.back_end = back_end;
  run.rows = static_cast<std::int64_t>(u.shape(0));
  run.columns = static_cast<std::int32_t>(u.shape(1));
  run.blocks = blocks;
  run.threads = threads;
  run.iterations = iterations;
  run.wait_limit = wait_limit;
  return without_gil([&] { return gpu_jacobi<T>(run, u.data(), check_signals); });
}

// (seconds, wrong words, checksum, what it should be).
nb::tuple soak(const Devices& gpus, const std::string& back_end, std::int64_t words, int blocks,
               std::uint32_t epochs, int channels) {
  SoakStudy study;
  study.devices = gpus;
  study.back_end = back_end;
  study.words = words;
  study.blocks = blocks;
  study.epochs = epochs;
  study.channels = channels;
  const SoakResult r = without_gil([&] { return run_soak(study, check_signals); });
  return nb::make_tuple(r.seconds, r.wrong, r.checksum, r.expected);
}

double flood(int gpu, const std::string& back_end, int blocks, int threads, std::int64_t items) {
  FloodStudy study;
  study.devices = {gpu};
  study.back_end = back_end;
  study.blocks = blocks;
  study.threads = threads;
  study.items = items;
  return without_gil([&] { return run_flood(study, check_signals); });
}

nb::list scripts(const std::string& text, const Devices& gpus, const std::string& back_end,
                 int replays) {
  const auto all =
      without_gil([&] { return replay_scripts(text, gpus, back_end, replays, check_signals); });
  nb::list out;
  for (const ScriptReplay& r : all) {
    nb::dict one;
    one["name"] = r.name;
    one["skipped"] = r.skipped;
    one["replays"] = r.replays;
    one["wrong"] = r.wrong;
    one["difference"] = r.difference;
    out.append(one);
  }
  return out;
}

}  // namespace
}  // namespace cpufree::triggered

NB_MODULE(_triggered_gpu, m) {
  namespace triggered = cpufree::triggered;
  nb::register_exception_translator(cpufree::translate_error);
  cpufree::triggered::bind_structs(m);
  using triggered::PyGpuDomain;
  nb::class_<PyGpuDomain>(m, "Domain")
      .def(nb::init<const nb::dict&, const std::string&, double, bool, const std::vector<int>&>(),
           nb::arg("sizes"), nb::arg("back_end"), nb::arg("wait_limit"), nb::arg("times"),
           nb::arg("gpus"))
      .def("add_buffer", &PyGpuDomain::add_buffer, nb::arg("name"), nb::arg("bytes"))
      .def("remove_buffer", &PyGpuDomain::remove_buffer, nb::arg("name"))
      .def("post", &PyGpuDomain::post, nb::arg("pe"), nb::arg("operation"))
      .def("run", &PyGpuDomain::run, nb::arg("blocks"), nb::arg("values"))
      .def("close", &PyGpuDomain::close)
      .def("firings", &PyGpuDomain::firings, nb::arg("pe"))
      .def("view", &PyGpuDomain::view, nb::arg("pe"), nb::arg("offset"), nb::arg("bytes"))
      .def("write", &PyGpuDomain::write, nb::arg("pe"), nb::arg("offset"), nb::arg("values"));
  m.def("messages", &triggered::messages, nb::arg("gpus"), nb::arg("path"), nb::arg("back_end"),
        nb::arg("bytes"), nb::arg("rounds"), nb::arg("blocks"), nb::arg("before"), nb::arg("after"),
        nb::arg("order") = "ahead");
  m.def("overlap", &triggered::overlap, nb::arg("gpus"), nb::arg("back_end"), nb::arg("bytes"),
        nb::arg("copies"), nb::arg("tags"), nb::arg("rounds"), nb::arg("seconds"));
  m.def("allreduce", &triggered::allreduce, nb::arg("gpus"), nb::arg("way"), nb::arg("by"),
        nb::arg("single"), nb::arg("blocks"), nb::arg("threads"), nb::arg("count"),
        nb::arg("repeats"));
  m.def("collective_allreduce", &triggered::collective_allreduce, nb::arg("gpus"),
        nb::arg("library"), nb::arg("graph"), nb::arg("single"), nb::arg("count"),
        nb::arg("repeats"));
  const auto jacobi = [&](auto function) {
    m.def("jacobi", function, nb::arg("u").noconvert(), nb::arg("iterations"), nb::arg("gpus"),
          nb::arg("blocks"), nb::arg("threads"), nb::arg("way"), nb::arg("back_end"),
          nb::arg("wait_limit"));
  };
  jacobi(&triggered::iterate<float>);
  jacobi(&triggered::iterate<double>);
  m.def("soak", &triggered::soak, nb::arg("gpus"), nb::arg("back_end"), nb::arg("words"),
        nb::arg("blocks"), nb::arg("epochs"), nb::arg("channels") = 1);
  m.def("flood", &triggered::flood, nb::arg("gpu"), nb::arg("back_end"), nb::arg("blocks"),
        nb::arg("threads"), nb::arg("items"));
  m.def("scripts", &triggered::scripts, nb::arg("text"), nb::arg("gpus"), nb::arg("back_end"),
        nb::arg("replays"));
}
