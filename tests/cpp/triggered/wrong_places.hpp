// Random operations of NICs, most of whose places are wrong: each of those has to be refused, by
// the host where it is posted or by the NIC where a trigger supplies it, and no byte may change
// that no right operation writes. What is right a map of the memory says, byte by byte.
#pragma once

#include <cstring>

#include "cpufree/base/error.hpp"
#include "nics_rig.hpp"

namespace wrong_places {

using namespace nics_rig;

struct Counts {
  int wrong = 0;     // operations that had to be refused
  int right = 0;     // and those that had to be carried out
  int missed = 0;    // wrong ones that were not refused, right ones that were
  int changed = 0;   // bytes that are not what right operations leave
  int unplaced = 0;  // wrong places of which the report does not say where they lie
};

// Two PEs with some buffers in a region of memory that has gaps, and of which some have been freed.
class World {
 public:
  static constexpr int kOperations = 50;
  static constexpr std::uint64_t kRegion = 4096;

  // `wrong_only`: for NICs that may carry out right operations in any order.
  World(std::uint64_t seed, bool wrong_only)
      : random_(seed), wrong_only_(wrong_only), triggers_(layout_, {2, 1, 8, kOperations, 1}) {
    region_ = layout_.reserve<std::byte>(kRegion);
    heaps_ = std::make_unique<cpu_threads::SymmetricHeaps>(2, layout_.bytes());
    for (int pe = 0; pe < 2; ++pe) {
      for (std::uint64_t k = 0; k < kRegion; ++k)
        region_.at(heaps_->base(pe))[k] = static_cast<std::byte>(random_());
      expected_[pe].assign(region_.at(heaps_->base(pe)), region_.at(heaps_->base(pe)) + kRegion);
    }
  }

  template <class Make>
  Counts run(Make&& make) {
    NicsConfig config;
    config.layout = &triggers_;
    config.heaps = heaps_->bases();
    config.bytes = layout_.bytes();
    config.times = true;
    const std::unique_ptr<Nics> nics = make(config);
    add_buffers(*nics);
    HostPort port(heaps_->bases(), {0, 2, 0, 1}, std::chrono::seconds(300));
    const TriggerBoard board = triggers_.board(heaps_->base(0));
    Triggers<HostPort> triggers(port, board, 0);
    std::size_t fired = 0;
    for (std::uint32_t k = 0; k < kOperations; ++k) fired += one(k, *nics, triggers);
    const NicReport report = nics->stop();
    std::uint64_t refused = report.faults_dropped;
    for (const nics::NicFault& f : report.faults) {
      refused += f.fault.count;
      const bool has_place = f.fault.kind != TriggerFault::Kind::no_pe;
      counts_.unplaced += has_place && f.place.find("buffer") == std::string::npos ? 1 : 0;
    }
    counts_.missed += refused == refused_by_nic_ ? 0 : 1;
    counts_.missed += nics->firings(0).size() == fired ? 0 : 1;
    for (int pe = 0; pe < 2; ++pe)
      for (std::uint64_t k = 0; k < kRegion; ++k)
        counts_.changed += region_.at(heaps_->base(pe))[k] == expected_[pe][k] ? 0 : 1;
    return counts_;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void add_buffers(Nics& nics) {
    std::uint64_t at = below(64);
    for (int number = 1; at < kRegion; ++number) {
      const std::uint64_t bytes = std::min(1 + below(600), kRegion - at);
      const std::string name = "b" + std::to_string(number);
      nics.add_buffer(name, region_.offset + at, bytes);
      const bool freed = below(5) == 0;
      if (freed) nics.remove_buffer(name);
      for (std::uint64_t k = at; k < at + bytes; ++k) owner_[k] = freed ? 0 : number;
      at += bytes + (below(2) == 0 ? 0 : below(100));
    }
  }

  bool is_right(std::uint64_t place, std::uint64_t bytes) const {
    const std::uint64_t at = place - region_.offset;
    if (at >= kRegion || bytes > kRegion - at || owner_[at] == 0) return false;
    for (std::uint64_t k = at; k < at + bytes; ++k)
      if (owner_[k] != owner_[at]) return false;
    return true;
  }
  std::uint64_t any_place() {
    const std::uint64_t offsets[] = {0, layout_.bytes() - below(64), std::uint64_t{1} << 53,
                                     ~std::uint64_t{0} - below(600), random_()};
    return below(4) == 0 ? offsets[below(5)] : region_.offset + below(kRegion + 64);
  }
  std::uint64_t right_place(std::uint64_t bytes) {
    std::uint64_t place = any_place();
    while (!is_right(place, bytes)) place = any_place();
    return place;
  }

  // One operation of PE 0's NIC. Returns whether it has to fire.
  bool one(std::uint32_t number, Nics& nics, Triggers<HostPort>& triggers) {
    TriggerOperation o;
    o.first = {number, 0};
    o.kind = below(2) == 0 ? TriggerKind::put : TriggerKind::get;
    o.bytes = 1 + below(100);
    o.open = static_cast<unsigned>(below(8));
    const std::uint64_t bad = below(4);  // the field that may be wrong
    std::uint64_t value[kTriggerFields] = {bad == 0 ? any_place() : right_place(o.bytes),
                                           bad == 1 ? any_place() : right_place(o.bytes),
                                           bad == 2 ? 2 + below(1 << 20) : below(2)};
    if (bad == 2 && below(2) == 0) value[2] = ~std::uint64_t{0};
    if (bad == 3 && below(2) == 0) {
      value[1] = value[0] + below(o.bytes);
      value[2] = 0;
    }
    const bool right =
        is_right(value[0], o.bytes) && is_right(value[1], o.bytes) && value[2] < 2 &&
        (value[2] == 1 || value[0] + o.bytes <= value[1] || value[1] + o.bytes <= value[0]);
    if (right && wrong_only_) return false;
    ++(right ? counts_.right : counts_.wrong);
    return carry_out(o, value, right, nics, triggers);
  }

  bool carry_out(TriggerOperation& o, const std::uint64_t* value, bool right, Nics& nics,
                 Triggers<HostPort>& triggers) {
    TriggerFields fields;
    fields.given = o.open;
    for (unsigned k = 0; k < kTriggerFields; ++k)
      if ((o.open >> k & 1U) != 0U) fields.value[k] = value[k];
    if ((o.open & TriggerFields::source) == 0U) o.source = value[0];
    if ((o.open & TriggerFields::target) == 0U) o.target = value[1];
    if ((o.open & TriggerFields::pe) == 0U) o.pe = static_cast<std::int32_t>(value[2]);
    try {
      nics.post(0, o);
    } catch (const InvalidInput&) {
      counts_.missed += right ? 1 : 0;
      return false;
    }
    triggers.trigger(o.first, fields);
    if (right) apply(o, value);
    refused_by_nic_ += right ? 0 : 1;
    return right;
  }

  void apply(const TriggerOperation& o, const std::uint64_t* value) {
    const bool put = o.kind == TriggerKind::put;
    const std::size_t there = value[2];
    const std::byte* from = expected_[put ? 0 : there].data() + (value[0] - region_.offset);
    std::memcpy(expected_[put ? there : 0].data() + (value[1] - region_.offset), from, o.bytes);
  }

  std::mt19937_64 random_;
  bool wrong_only_;
  SymmetricLayout layout_;
  TriggerLayout triggers_;
  Symmetric<std::byte> region_;
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps_;
  std::vector<std::byte> expected_[2];
  int owner_[kRegion] = {};  // the number of each byte's buffer; 0: none
  std::uint64_t refused_by_nic_ = 0;
  Counts counts_;
};

// Until `count` wrong operations have been tried.
template <class Make>
Counts tried(Make&& make, int count, bool wrong_only) {
  Counts sum;
  for (std::uint64_t seed = 1; sum.wrong < count; ++seed) {
    const Counts one = World(seed, wrong_only).run(make);
    sum.wrong += one.wrong;
    sum.right += one.right;
    sum.missed += one.missed;
    sum.changed += one.changed;
    sum.unplaced += one.unplaced;
  }
  return sum;
}

template <class Make>
void check_wrong_places(Make&& make, int count, bool wrong_only) {
  const Counts counts = tried(make, count, wrong_only);
  CHECK(counts.wrong >= count);
  CHECK(wrong_only || counts.right > count / 10);
  CHECK_EQ(counts.missed, 0);
  CHECK_EQ(counts.changed, 0);
  CHECK_EQ(counts.unplaced, 0);
}

}  // namespace wrong_places
