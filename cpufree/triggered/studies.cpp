#include "cpufree/triggered/studies.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::triggered {

namespace {

using Port = cpu_threads::Port;
constexpr std::chrono::seconds kWaitLimit{30};

std::int64_t now() { return static_cast<std::int64_t>(Port::now()); }

void compute(double seconds) {
  const std::int64_t end = now() + static_cast<std::int64_t>(1e9 * seconds);
  while (now() < end) cpu_threads::pause_cpu();
}

void wait_for(cpu_threads::Launch& launch, const std::function<void()>& look) {
  while (!launch.wait_for(cpu_threads::kLook)) look();
  if (launch.gave_up()) throw EngineError("a block of a study waited longer than 30 s");
}

// Nanoseconds of one round; 0: not yet.
struct Round {
  std::atomic<std::int64_t> waits{0}, seen{0};
  std::int64_t start = 0, begun = 0, ready = 0, sent = 0, ended = 0, observed = 0;
  std::atomic<bool> wrong{false};
};

class Messages {
 public:
  Messages(const MessageStudy& study, const MakeNics& make)
      : study_(study),
        layout_(symmetric_, {2, 1, 8, 1, 1}),
        source_(symmetric_.reserve<std::byte>(study.bytes)),
        target_(symmetric_.reserve<std::byte>(study.bytes)),
        heaps_(2, symmetric_.bytes()) {
    nics::NicsConfig config;
    config.layout = &layout_;
    config.heaps = heaps_.bases();
    config.bytes = symmetric_.bytes();
    config.times = true;
    nics_ = make(config);
    nics_->add_buffer("source", source_.offset, study.bytes);
    nics_->add_buffer("target", target_.offset, study.bytes);
    if (posts_ahead(study.order) && uses_nic()) post(0, static_cast<std::uint32_t>(study.rounds));
  }

  std::vector<MessageTimes> run(const std::function<void()>& look) {
    std::vector<Round> rounds(static_cast<std::size_t>(study_.rounds));
    for (std::size_t k = 0; k < rounds.size(); ++k)
      one(rounds[k], static_cast<std::uint32_t>(k), look);
    nics_->stop();
    std::vector<MessageTimes> all;
    for (std::size_t k = 0; k < rounds.size(); ++k) {
      if (rounds[k].wrong) throw EngineError("a study delivered a wrong payload");
      all.push_back(times_of(rounds[k], k));
    }
    return all;
  }

 private:
  void post(std::uint32_t epoch, std::uint32_t epochs) {
    TriggerOperation put;
    put.first = {0, epoch};
    put.pe = 1;
    put.source = source_.offset;
    put.open = supplied(study_.order, target_.offset).given;
    put.target = put.open == 0 ? target_.offset : 0;
    put.bytes = study_.bytes;
    put.signal = 0;
    put.epochs = epochs;
    nics_->post(0, put);
  }
  bool uses_nic() const { return study_.path == Path::triggered || study_.path == Path::at_end; }

  cpu_threads::LaunchConfig config(int pe) const {
    cpu_threads::LaunchConfig c;
    c.pes = 2;
    c.first = pe;
    c.here = 1;
    c.heaps = heaps_.bases();
    c.beside = uses_nic() ? 2 : 0;
    c.wait_limit = kWaitLimit;
    return c;
  }

  void one(Round& round, std::uint32_t epoch, const std::function<void()>& look) {
    cpu_threads::Launch target(config(1), [&](Port& port) { receive(port, round, epoch); });
    while (round.waits == 0) std::this_thread::yield();
    round.start = now();
    if (study_.order == PostOrder::post_first) post(epoch, 1);
    {
      cpu_threads::Launch initiator(config(0), [&](Port& port) { send(port, round, epoch); });
      if (study_.order == PostOrder::launch_first) post(epoch, 1);
      wait_for(initiator, look);
    }
    round.observed = now();
    if (study_.path == Path::host) {
      std::memcpy(target_.at(heaps_.base(1)), source_.at(heaps_.base(0)), study_.bytes);
      cpu_threads::store_flag(*layout_.board(heaps_.base(1)).signals, Epoch{epoch} + 1);
    } else if (study_.path == Path::at_end) {
      nics::HostPort port(heaps_.bases(), {0, 2, 0, 1}, kWaitLimit);
      const TriggerBoard board = layout_.board(heaps_.base(0));
      Triggers<nics::HostPort> triggers(port, board, 0, sent_);
      triggers.trigger(TriggerTag{0, epoch});
      sent_ = triggers.sent();
    }
    wait_for(target, look);
  }

  void send(Port& port, Round& round, std::uint32_t epoch) {
    round.begun = now();
    compute(study_.work);
    std::byte* const source = source_.at(heaps_.base(0));
    const std::uint64_t stamp = epoch + 1;
    std::memcpy(source, &stamp, sizeof(stamp));
    std::memcpy(source + study_.bytes - sizeof(stamp), &stamp, sizeof(stamp));
    round.ready = now();
    const TriggerBoard board = layout_.board(heaps_.base(0));
    if (study_.path == Path::triggered) {
      Triggers<Port> triggers(port, board, 0, sent_);
      triggers.trigger(TriggerTag{0, epoch}, supplied(study_.order, target_.offset));
      sent_ = triggers.sent();
    } else if (study_.path == Path::stores) {
      std::memcpy(target_.at(heaps_.base(1)), source, study_.bytes);
      port.publish(Scope::system);
      port.put_flag(board.signals, 1, Epoch{epoch} + 1);
    }
    round.sent = now();
    compute(study_.work);
    round.ended = now();
  }

  void receive(Port& port, Round& round, std::uint32_t epoch) {
    const TriggerBoard board = layout_.board(heaps_.base(1));
    Triggers<Port> triggers(port, board, 1);
    round.waits = 1;
    if (!triggers.wait_signal(0, epoch, 0)) return;
    round.seen = now();
    std::uint64_t first = 0, last = 0;
    const std::byte* const target = target_.at(heaps_.base(1));
    std::memcpy(&first, target, sizeof(first));
    std::memcpy(&last, target + study_.bytes - sizeof(last), sizeof(last));
    round.wrong = first != epoch + 1 || last != epoch + 1;
  }

  MessageTimes times_of(const Round& round, std::size_t k) const {
    const auto since = [&](std::int64_t at) {
      return 1e-9 * static_cast<double>(at - round.start);
    };
    MessageTimes t;
    t.begun = since(round.begun);
    t.ready = since(round.ready);
    const bool sends = study_.path == Path::triggered || study_.path == Path::stores;
    t.sent = sends ? since(round.sent) : std::numeric_limits<double>::quiet_NaN();
    t.ended = since(round.ended);
    t.observed = since(round.observed);
    t.nic_begun = t.nic_ended = std::numeric_limits<double>::quiet_NaN();
    if (uses_nic()) {
      t.nic_begun = since(nics_->firings(0).at(k).begun);
      t.nic_ended = since(nics_->firings(0).at(k).ended);
    }
    t.seen = since(round.seen);
    return t;
  }

  MessageStudy study_;
  SymmetricLayout symmetric_;
  TriggerLayout layout_;
  Symmetric<std::byte> source_, target_;
  cpu_threads::SymmetricHeaps heaps_;
  std::unique_ptr<nics::Nics> nics_;
  Epoch sent_ = 0;
};

// Values whose sums are exact: whole numbers.
template <class T>
T summand(int pe, std::int64_t k, std::uint32_t epoch) {
  return static_cast<T>(pe + 1 + (k + epoch) % 7);
}

template <class T>
class Reduction {
 public:
  explicit Reduction(const ReduceStudy& study)
      : study_(study),
        layout_(symmetric_, sizes()),
        values_(symmetric_.reserve<T>(static_cast<std::size_t>(study.schedule.count))),
        inbox_(symmetric_.reserve<T>(static_cast<std::size_t>(study.schedule.inbox()))),
        heaps_(study.schedule.pes, symmetric_.bytes()) {}

  std::vector<double> run(const MakeNics& make, const std::function<void()>& look) {
    nics::NicsConfig config;
    config.layout = &layout_;
    config.heaps = heaps_.bases();
    config.bytes = symmetric_.bytes();
    const std::unique_ptr<nics::Nics> nics = make(config);
    nics->add_buffer("vectors", values_.offset, symmetric_.bytes() - values_.offset);
    if (study_.by_triggers) post_all(*nics);
    cpu_threads::LaunchConfig launch_config;
    launch_config.pes = study_.schedule.pes;
    launch_config.blocks = study_.schedule.blocks;
    launch_config.heaps = heaps_.bases();
    launch_config.beside = study_.by_triggers ? study_.schedule.pes : 0;
    launch_config.wait_limit = kWaitLimit;
    {
      cpu_threads::Launch launch(launch_config, [&](Port& port) { kernel(port); });
      wait_for(launch, look);
    }
    nics->stop();
    if (wrong_) throw EngineError("a study's all-reduce gave a wrong sum");
    return seconds_;
  }

 private:
  TriggerSizes sizes() const {
    const VectorSchedule& s = study_.schedule;
    return {s.pes, s.blocks, 64, std::max(1, s.operations()), s.signals()};
  }

  void post_all(nics::Nics& nics) const {
    const VectorSchedule& s = study_.schedule;
    for (int pe = 0; pe < s.pes; ++pe)
      for (int block = 0; block < s.blocks; ++block)
        for (int k = 0; k < s.sends(); ++k)
          nics.post(pe, operation_of<T>(s, pe, block, k, values_.offset, inbox_.offset,
                                        study_.repeats, 0, 0));
  }

  void kernel(Port& port) {
    const TriggerBoard board = layout_.board(heaps_.base(port.pe()));
    Triggers<Port> own(port, board, port.pe());
    TriggerTransport<Port> by_triggers(own, 0, 0);
    StoreTransport<Port> by_stores(port, board.signals);
    study_.by_triggers ? sum_all(port, by_triggers) : sum_all(port, by_stores);
  }

  template <class Transport>
  void sum_all(Port& port, Transport& transport) {
    const VectorSchedule& s = study_.schedule;
    std::byte* const heap = heaps_.base(port.pe());
    const VectorReduceArgs<T> args{s, values_.at(heap), inbox_.at(heap)};
    VectorAllReduce<Port, T, Transport> reduce(port, transport, args);
    const std::int64_t begin = s.part(port.block()), end = s.part(port.block() + 1);
    for (std::uint32_t e = 0; e < study_.repeats; ++e) {
      for (std::int64_t k = begin; k < end; ++k) args.values[k] = summand<T>(port.pe(), k, e);
      const std::int64_t start = now();
      if (!reduce.sum()) return;
      if (port.pe() == 0 && port.block() == 0)
        seconds_.push_back(1e-9 * static_cast<double>(now() - start));
      for (std::int64_t k = begin; k < end; ++k) {
        const T pe_part = static_cast<T>(s.pes * (s.pes + 1) / 2);
        const T expected = pe_part + static_cast<T>(s.pes) * static_cast<T>((k + e) % 7);
        if (args.values[k] != expected) wrong_ = true;
      }
    }
  }

  ReduceStudy study_;
  SymmetricLayout symmetric_;
  TriggerLayout layout_;
  Symmetric<T> values_, inbox_;
  cpu_threads::SymmetricHeaps heaps_;
  std::vector<double> seconds_;
  std::atomic<bool> wrong_{false};
};

}  // namespace

Path path_named(const std::string& name) {
  const char* const names[] = {"host", "at_end", "triggered", "stores"};
  for (int k = 0; k < 4; ++k)
    if (name == names[k]) return static_cast<Path>(k);
  throw InvalidInput("there is no path '" + name +
                     "': choose from host, at_end, triggered, stores");
}

PostOrder order_named(const std::string& name) {
  const char* const names[] = {"ahead", "post_first", "launch_first", "open"};
  for (int k = 0; k < 4; ++k)
    if (name == names[k]) return static_cast<PostOrder>(k);
  throw InvalidInput("there is no order '" + name +
                     "': choose from ahead, post_first, launch_first, open");
}

void require_order(PostOrder order, Path path) {
  require(order == PostOrder::ahead || path == Path::triggered,
          "puts are posted message by message where kernels trigger them");
}

std::vector<MessageTimes> measure_messages(const MessageStudy& study, const MakeNics& make,
                                           const std::function<void()>& look) {
  require(study.bytes >= 8 && study.bytes % 8 == 0, "a message has a multiple of 8 bytes");
  require(study.rounds >= 1, "a study has at least one round");
  require_order(study.order, study.path);
  return Messages(study, make).run(look);
}

std::vector<double> measure_allreduce(const ReduceStudy& study, const MakeNics& make,
                                      const std::function<void()>& look) {
  const VectorSchedule& s = study.schedule;
  require(s.pes >= 1 && s.blocks >= 1 && s.count >= 1 && study.repeats >= 1,
          "an all-reduce has PEs, blocks, values and repeats");
  return study.single ? Reduction<float>(study).run(make, look)
                      : Reduction<double>(study).run(make, look);
}

}  // namespace cpufree::triggered
