// Endpoints of libfabric, one for each PE of this process, with all their heaps registered; and two
// ways to have the provider hold back a transfer until a counter has reached a threshold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

namespace cpufree::nics {

// Closes what libfabric has opened.
struct CloseFid {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Fid = std::unique_ptr<T, CloseFid>;

// Throws EngineError where `result` is an error of libfabric.
void check_fabric(long result, const char* what);

// A transfer of one operation that the provider holds back.
struct Transfer {
  bool get = false;
  int pe = 0;  // the other one
  void* here = nullptr;
  std::uint64_t there = 0;  // offset in its heap
  std::size_t bytes = 0;
  std::uint64_t threshold = 0;
};

// What a provider keeps of one such transfer. Stays where it is while the transfer is under way.
struct Held {
  Fid<fid_cntr> trigger;   // counts
  Fid<fid_cntr> complete;  // where the provider reports by counter
  fi_triggered_context2 call{};
  fi_deferred_work work{};
  fi_op_rma operation{};
  iovec local{};
  fi_rma_iov remote{};
  void* desc = nullptr;
  std::uint64_t word = 0;  // a flag's value, on its way
  fi_context2 word_context{};
};

enum class Hold {
  calls,  // FI_TRIGGER: fi_writemsg and fi_readmsg with a threshold
  queue   // FI_QUEUE_WORK: the deferred work queue, the only way of the provider cxi
};

class Fabric {
 public:
  // Throws Unsupported where no provider has triggered operations.
  Fabric(std::byte* const* heaps, int pes, std::size_t bytes);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  void open_counters(Held& held, Hold how);
  // Starts a transfer of PE `pe` once held.trigger has reached the threshold, from zero.
  void hold(int pe, Held& held, const Transfer& transfer, Hold how);
  // Sets the 64-bit word at `offset` on PE `to`.
  void set_word(int pe, Held& held, int to, std::uint64_t offset);
  // Contexts of what PE `pe` has completed. Makes progress.
  int completed(int pe, void* (&contexts)[8]);

  const std::string& provider() const { return provider_; }

 private:
  struct End {
    Fid<fid_mr> memory;
    Fid<fid_cq> queue;
    Fid<fid_ep> endpoint;
    std::byte* heap = nullptr;
  };
  void open_end(End& end, std::size_t bytes, std::uint64_t key);
  void learn_addresses();
  std::uint64_t address(int pe, std::uint64_t offset) const;
  template <class F>
  void retry(int pe, const char* what, F&& call);

  fi_info* info_ = nullptr;
  std::string provider_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  std::vector<End> ends_;  // closed first
  std::vector<fi_addr_t> peers_;
  std::vector<void*> early_;  // completions that were met while retrying, with their PE
  std::vector<int> early_pe_;
};

}  // namespace cpufree::nics
