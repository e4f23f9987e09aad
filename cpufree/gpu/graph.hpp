// Graphs: work that is recorded once, and launched again and again.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "cpufree/gpu/stream.hpp"

namespace cpufree::gpu {

// What was recorded, ready to be launched again and again.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept
      : graph_(std::exchange(other.graph_, nullptr)), exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~Graph() {
    if (exec_ != nullptr) static_cast<void>(gpuGraphExecDestroy(exec_));
    if (graph_ != nullptr) static_cast<void>(gpuGraphDestroy(graph_));
  }

  // What `work` does on `stream`, and on streams that wait for it and are waited for again.
  template <class F>
  static Graph record(const Stream& stream, F&& work) {
    const OnDevice here(stream.device());
    Graph graph;
    check_call(gpuStreamBeginCapture(stream), "StreamBeginCapture");
    end_after(stream, graph.graph_, work);
    graph.prepare(stream);
    return graph;
  }

  // The same as the body of a loop, which a kernel of it ends by `set_loop(handle, false)`. There
  // is one graph for each stream, all recorded together: work(handles).
  template <class F>
  static std::vector<Graph> record_loops(const std::vector<const Stream*>& streams, F&& work) {
    std::vector<Graph> graphs(streams.size());
    std::vector<gpuLoopHandle_t> handles(streams.size());
    std::size_t begun = 0;
    std::size_t ended = 0;
    gpuGraph_t body = nullptr;
    try {
      for (; begun < streams.size(); ++begun) {
        Graph& graph = graphs[begun];
        const OnDevice here(streams[begun]->device());
        check_call(gpuGraphCreate(&graph.graph_, 0), "GraphCreate");
        check_call(gpuGraphLoopHandle(&handles[begun], graph.graph_), "GraphLoopHandle");
        check_call(gpuGraphAddLoop(graph.graph_, handles[begun], &body), "GraphAddLoop");
        check_call(gpuStreamBeginCaptureInto(*streams[begun], body), "StreamBeginCaptureInto");
      }
      work(handles);
      while (ended < begun) {
        const OnDevice here(streams[ended]->device());
        check_call(gpuStreamEndCapture(*streams[ended++], &body), "StreamEndCapture");
      }
    } catch (...) {  // what is still captured would refuse everything else
      for (; ended < begun; ++ended) static_cast<void>(gpuStreamEndCapture(*streams[ended], &body));
      throw;
    }
    // Not before: a thread that captures may not do what this does.
    for (std::size_t k = 0; k < streams.size(); ++k) {
      const OnDevice here(streams[k]->device());
      graphs[k].prepare(*streams[k]);
    }
    return graphs;
  }

  void launch(const Stream& stream) const {
    const OnDevice here(stream.device());
    check_call(gpuGraphLaunch(exec_, stream), "GraphLaunch");
  }

 private:
  template <class F>
  static void end_after(const Stream& stream, gpuGraph_t& graph, F&& work) {
    try {
      work();
    } catch (...) {
      static_cast<void>(gpuStreamEndCapture(stream, &graph));
      throw;
    }
    check_call(gpuStreamEndCapture(stream, &graph), "StreamEndCapture");
  }
  void prepare(const Stream& stream) {
    check_call(gpuGraphInstantiate(&exec_, graph_), "GraphInstantiate");
    check_call(gpuGraphUpload(exec_, stream), "GraphUpload");
    stream.drain(Deadline(kCopyLimit), "the upload of a graph");
  }

  gpuGraph_t graph_ = nullptr;
  gpuGraphExec_t exec_ = nullptr;
};

}  // namespace cpufree::gpu
