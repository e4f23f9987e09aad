#include "cpufree/triggered/nics/libfabric/fabric.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>

#include "cpufree/base/error.hpp"

namespace cpufree::nics {

namespace {

constexpr std::chrono::seconds kPatience{20};  // for room in a provider's queue

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

Info hints() {
  Info info(fi_allocinfo());
  if (info == nullptr) throw OutOfMemory("libfabric has no memory for its hints");
  info->caps = FI_RMA | FI_ATOMIC | FI_TRIGGER;
  info->mode = FI_CONTEXT | FI_CONTEXT2;
  info->ep_attr->type = FI_EP_RDM;
  info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  // With automatic progress the sockets provider stalls for seconds at times.
  info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  info->domain_attr->threading = FI_THREAD_SAFE;
  return info;
}

}  // namespace

void check_fabric(long result, const char* what) {
  if (result < 0)
    throw EngineError(std::string("libfabric: ") + what +
                      " failed: " + fi_strerror(static_cast<int>(-result)));
}

Fabric::Fabric(std::byte* const* heaps, int pes, std::size_t bytes) {
  const Info wanted = hints();
  const int found =
      fi_getinfo(FI_VERSION(1, 15), "127.0.0.1", nullptr, FI_SOURCE, wanted.get(), &info_);
  if (found != 0)
    throw Unsupported(std::string("no provider of libfabric has triggered operations (") +
                      fi_strerror(-found) + "): the sockets provider and cxi have");
  provider_ = info_->fabric_attr->prov_name;
  fid_fabric* fabric = nullptr;
  check_fabric(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check_fabric(fi_domain(fabric, info_, &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  check_fabric(fi_av_open(domain, &attributes, &addresses, nullptr), "fi_av_open");
  addresses_.reset(addresses);
  ends_.resize(static_cast<std::size_t>(pes));
  for (int pe = 0; pe < pes; ++pe) {
    End& end = ends_[static_cast<std::size_t>(pe)];
    end.heap = heaps[pe];
    open_end(end, bytes, static_cast<std::uint64_t>(pe));
  }
  learn_addresses();
}

Fabric::~Fabric() {
  for (End& end : ends_) end.endpoint.reset();  // before what is bound to it
  ends_.clear();
  addresses_.reset();
  domain_.reset();
  fabric_.reset();
  fi_freeinfo(info_);
}

void Fabric::open_end(End& end, std::size_t bytes, std::uint64_t key) {
  constexpr std::uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  fid_mr* memory = nullptr;
  check_fabric(fi_mr_reg(domain_.get(), end.heap, bytes, access, 0, key, 0, &memory, nullptr),
               "fi_mr_reg");
  end.memory.reset(memory);
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_CONTEXT;
  fid_cq* queue = nullptr;
  check_fabric(fi_cq_open(domain_.get(), &attributes, &queue, nullptr), "fi_cq_open");
  end.queue.reset(queue);
  fid_ep* endpoint = nullptr;
  check_fabric(fi_endpoint(domain_.get(), info_, &endpoint, nullptr), "fi_endpoint");
  end.endpoint.reset(endpoint);
  check_fabric(fi_ep_bind(endpoint, &addresses_->fid, 0), "fi_ep_bind of the address vector");
  check_fabric(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the queue");
  check_fabric(fi_enable(endpoint), "fi_enable");
}

void Fabric::learn_addresses() {
  for (const End& end : ends_) {
    char name[256];
    std::size_t size = sizeof(name);
    check_fabric(fi_getname(&end.endpoint->fid, name, &size), "fi_getname");
    fi_addr_t peer = FI_ADDR_UNSPEC;
    const int added = fi_av_insert(addresses_.get(), name, 1, &peer, 0, nullptr);
    if (added != 1) throw EngineError("libfabric: fi_av_insert took no address");
    peers_.push_back(peer);
  }
}

std::uint64_t Fabric::address(int pe, std::uint64_t offset) const {
  const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const auto heap = reinterpret_cast<std::uintptr_t>(ends_[static_cast<std::size_t>(pe)].heap);
  return by_address ? heap + offset : offset;
}

void Fabric::open_counters(Held& held, Hold how) {
  fi_cntr_attr attributes{};
  attributes.events = FI_CNTR_EVENTS_COMP;
  fid_cntr* counter = nullptr;
  check_fabric(fi_cntr_open(domain_.get(), &attributes, &counter, nullptr), "fi_cntr_open");
  held.trigger.reset(counter);
  if (how == Hold::calls) return;
  check_fabric(fi_cntr_open(domain_.get(), &attributes, &counter, nullptr), "fi_cntr_open");
  held.complete.reset(counter);
}

// Calls until the provider has room, and makes progress meanwhile.
template <class F>
void Fabric::retry(int pe, const char* what, F&& call) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const long result = call();
    if (result != -FI_EAGAIN) return check_fabric(result, what);
    if (std::chrono::steady_clock::now() - start > kPatience)
      throw EngineError(std::string("libfabric: ") + what + " had no room for 20 s");
    fi_cq_entry entry[1];
    if (fi_cq_read(ends_[static_cast<std::size_t>(pe)].queue.get(), entry, 1) != 1) continue;
    early_.push_back(entry[0].op_context);
    early_pe_.push_back(pe);
  }
}

void Fabric::hold(int pe, Held& held, const Transfer& transfer, Hold how) {
  const End& end = ends_[static_cast<std::size_t>(pe)];
  const auto other = static_cast<std::size_t>(transfer.pe);
  check_fabric(fi_cntr_set(held.trigger.get(), 0), "fi_cntr_set");
  held.local = {transfer.here, transfer.bytes};
  held.remote = {address(transfer.pe, transfer.there), transfer.bytes,
                 fi_mr_key(ends_[other].memory.get())};
  held.desc = fi_mr_desc(end.memory.get());
  fi_msg_rma message{};
  message.msg_iov = &held.local;
  message.desc = &held.desc;
  message.iov_count = 1;
  message.addr = peers_[other];
  message.rma_iov = &held.remote;
  message.rma_iov_count = 1;
  const std::uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
  if (how == Hold::calls) {
    held.call.event_type = FI_TRIGGER_THRESHOLD;
    held.call.trigger.threshold = {held.trigger.get(), transfer.threshold};
    message.context = &held.call;
    return retry(pe, "a triggered transfer", [&] {
      return transfer.get ? fi_readmsg(end.endpoint.get(), &message, FI_COMPLETION | FI_TRIGGER)
                          : fi_writemsg(end.endpoint.get(), &message, flags | FI_TRIGGER);
    });
  }
  check_fabric(fi_cntr_set(held.complete.get(), 0), "fi_cntr_set");
  message.context = &held.work.context;
  held.operation = {end.endpoint.get(), message,
                    transfer.get ? std::uint64_t{FI_COMPLETION} : flags};
  held.work.threshold = transfer.threshold;
  held.work.triggering_cntr = held.trigger.get();
  held.work.completion_cntr = held.complete.get();
  held.work.op_type = transfer.get ? FI_OP_READ : FI_OP_WRITE;
  held.work.op.rma = &held.operation;
  retry(pe, "deferred work",
        [&] { return long{fi_control(&domain_->fid, FI_QUEUE_WORK, &held.work)}; });
}

void Fabric::set_word(int pe, Held& held, int to, std::uint64_t offset) {
  const End& end = ends_[static_cast<std::size_t>(pe)];
  const auto other = static_cast<std::size_t>(to);
  fi_ioc local{&held.word, 1};
  fi_rma_ioc remote{address(to, offset), 1, fi_mr_key(ends_[other].memory.get())};
  void* desc = nullptr;
  fi_msg_atomic message{};
  message.msg_iov = &local;
  message.desc = &desc;
  message.iov_count = 1;
  message.addr = peers_[other];
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.datatype = FI_UINT64;
  message.op = FI_ATOMIC_WRITE;
  message.context = &held.word_context;
  retry(pe, "an atomic store", [&] {
    return fi_atomicmsg(end.endpoint.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  });
}

int Fabric::completed(int pe, void* (&contexts)[8]) {
  for (std::size_t k = 0; k < early_.size(); ++k) {
    if (early_pe_[k] != pe) continue;
    contexts[0] = early_[k];
    early_.erase(early_.begin() + static_cast<std::ptrdiff_t>(k));
    early_pe_.erase(early_pe_.begin() + static_cast<std::ptrdiff_t>(k));
    return 1;
  }
  fid_cq* queue = ends_[static_cast<std::size_t>(pe)].queue.get();
  fi_cq_entry entries[8];
  const long count = fi_cq_read(queue, entries, 8);
  if (count == -FI_EAGAIN) return 0;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    fi_cq_readerr(queue, &error, 0);
    throw EngineError(std::string("libfabric: a transfer failed: ") + fi_strerror(error.err));
  }
  check_fabric(count, "fi_cq_read");
  for (long k = 0; k < count; ++k) contexts[k] = entries[k].op_context;
  return static_cast<int>(count);
}

}  // namespace cpufree::nics
