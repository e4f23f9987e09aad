// Triggers that are counted by the memory itself: for NICs that can wait for a word to reach a
// value and can do no more, such as the streams of a GPU's copy engines. No packets and no table: a
// trigger adds one to the word of its tag.
//
// An operation has kWindow words; epoch e is counted in word e % kWindow, which holds e << 32 plus
// the triggers seen. A NIC that waits for epoch e with threshold t waits until the word is at least
// (e << 32) + t.
//
// Re-arm. The first trigger of epoch e finds the word at an earlier epoch, waits until epoch
// e - kWindow is over (`done`), and swaps the word for (e << 32) + 1. Epochs are over in order: all
// of the word's earlier ones are, so no trigger relies on what was there. A trigger of a later
// epoch than e cannot have been there before: it waits for e to be over. Hence a word that is ahead
// of a trigger proves that the trigger's epoch is over: it is stray. What a word counts changes by
// one atomic swap that names both epoch and count, so that no trigger counts for another epoch, and
// none is lost: who swaps the word of an epoch away sees how often it was triggered in all.
//
// Visibility: as with packets (triggered.hpp). A thread that triggers has published after its
// stores; the swap extends what the first trigger published (a release sequence), so the NIC, which
// acquires with its wait, reads what every contributor stored before.
//
// Dynamic triggers have no place in a count: NICs of this kind refuse operations with open fields.
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/triggered/device/triggered.hpp"

namespace cpufree {

// Triggers beyond a threshold, as a kernel saw them.
struct StrayTrigger {
  TriggerTag tag;
  std::uint64_t count = 0;
};

// Of one PE's NIC, symmetric.
struct TriggerCounters {
  static constexpr std::uint32_t kWindow = 4;
  static constexpr int kStrays = 256;

  Flag* words = nullptr;       // [operations][kWindow]: those that trigger
  Flag* thresholds = nullptr;  // [operations]: the host
  Flag* stray_count = nullptr;
  StrayTrigger* strays = nullptr;  // [kStrays]: the first that there were

  CPUFREE_FN static Epoch word_of(std::uint32_t epoch, std::uint64_t count) {
    return (Epoch{epoch} << 32) + count;
  }
  CPUFREE_FN static std::uint32_t epoch_of(Epoch word) {
    return static_cast<std::uint32_t>(word >> 32);
  }
  CPUFREE_FN static std::uint64_t count_of(Epoch word) { return word & 0xffffffffU; }
  CPUFREE_FN Flag* word(TriggerTag tag) const {
    return words + tag.operation * kWindow + tag.epoch % kWindow;
  }
};

class CounterLayout {
 public:
  CounterLayout(SymmetricLayout& layout, int operations)
      : operations_(operations),
        words_(
            layout.reserve<Flag>(static_cast<std::size_t>(operations) * TriggerCounters::kWindow)),
        thresholds_(layout.reserve<Flag>(static_cast<std::size_t>(operations))),
        stray_count_(layout.reserve<Flag>(1)),
        strays_(layout.reserve<StrayTrigger>(TriggerCounters::kStrays)) {}

  TriggerCounters counters(std::byte* heap) const {
    return {words_.at(heap), thresholds_.at(heap), stray_count_.at(heap), strays_.at(heap)};
  }
  int operations() const { return operations_; }

 private:
  int operations_;
  Symmetric<Flag> words_;
  Symmetric<Flag> thresholds_;
  Symmetric<Flag> stray_count_;
  Symmetric<StrayTrigger> strays_;
};

// The verbs of `Triggers`. A port besides has add_flag and swap_flag, atomic on any PE's flag.
template <Port P>
class CounterTriggers : public TriggerWaits<P> {
  using TriggerWaits<P>::port_;
  using TriggerWaits<P>::board_;

 public:
  CPUFREE_KERNEL_FN CounterTriggers(P& port, const TriggerBoard& board,
                                    const TriggerCounters& counters, int nic)
      : TriggerWaits<P>(port, board), counters_(counters), nic_(nic) {}

  CPUFREE_KERNEL_FN bool trigger(TriggerGrain grain, TriggerTag first, std::int64_t items) {
    return TriggerWaits<P>::by_grain(*this, port_.block(), grain, first, items);
  }

  CPUFREE_KERNEL_FN bool trigger(TriggerTag tag) {
    port_.sync_block();
    bool good = true;
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      good = count(tag);
    }
    return tag.epoch < TriggerCounters::kWindow || port_.all(good);
  }

  CPUFREE_KERNEL_FN bool end() { return true; }

 private:
  friend TriggerWaits<P>;

  template <class F>
  CPUFREE_KERNEL_FN bool each(std::int64_t items, TriggerTag first, F&& number) {
    bool good = true;
    for (std::int64_t i = port_.lane(); good && i < items; i += port_.lanes()) {
      port_.publish(Scope::system);
      good = count({first.operation + static_cast<std::uint32_t>(number(i)), first.epoch});
    }
    return port_.all(good);
  }

  // Items that share a tag. Those of a warp are added by its first lane, with one swap: as many
  // swaps at a time as there are lanes would be in each other's way. The lane publishes after the
  // warp's barrier, and so what all its lanes have stored.
  CPUFREE_KERNEL_FN bool same(std::int64_t items, TriggerTag tag) {
    if constexpr (WarpPort<P>) {
      constexpr std::int64_t kWidth = P::warp_width;
      bool good = true;
      for (std::int64_t i = port_.warp() * kWidth; good && i < items; i += port_.lanes()) {
        const std::int64_t left = items - i;
        port_.warp_sync();
        if (port_.warp_lane() == 0) {
          port_.publish(Scope::system);
          good = count(tag, static_cast<Epoch>(left < kWidth ? left : kWidth));
        }
        good = port_.warp_all(good);
      }
      return port_.all(good);
    } else {
      return each(items, tag, [](std::int64_t) { return std::int64_t{0}; });
    }
  }

  // By one thread. False: a wait was given up; never in the first kWindow epochs, which do not
  // wait. The loop has no bound of its own: a swap fails where another trigger's has been counted.
  CPUFREE_KERNEL_FN bool count(TriggerTag tag, Epoch triggers = 1) {
    if (tag.operation >= static_cast<std::uint32_t>(board_.operations))
      return add_stray(tag, triggers);
    Flag* const word = counters_.word(tag);
    Epoch old = port_.get_flag(port_.peer(word, nic_));
    while (true) {
      const std::uint32_t epoch = TriggerCounters::epoch_of(old);
      if (epoch > tag.epoch) return add_stray(tag, triggers);
      const bool arms = epoch < tag.epoch;
      if (arms &&
          !wait_flag(port_, port_.peer(board_.done + tag.operation, nic_),
                     Epoch{tag.epoch} - TriggerCounters::kWindow + 1,
                     WaitSite{Channel::trigger_room, nic_, static_cast<int>(tag.operation)}))
        return false;
      const Epoch wanted = arms ? TriggerCounters::word_of(tag.epoch, triggers) : old + triggers;
      const Epoch seen = port_.swap_flag(word, nic_, old, wanted);
      if (seen == old) return !arms || add_excess({tag.operation, epoch}, old);
      old = seen;
    }
  }

  CPUFREE_KERNEL_FN bool add_excess(TriggerTag tag, Epoch word) {
    const std::uint64_t seen = TriggerCounters::count_of(word);
    const std::uint64_t threshold =
        port_.get_flag(port_.peer(counters_.thresholds + tag.operation, nic_));
    return seen <= threshold || add_stray(tag, seen - threshold);
  }

  // True.
  CPUFREE_KERNEL_FN bool add_stray(TriggerTag tag, std::uint64_t count) {
    const Epoch at = port_.add_flag(counters_.stray_count, nic_, 1);
    if (at < TriggerCounters::kStrays) port_.put(counters_.strays + at, nic_, {tag, count});
    return true;
  }

  const TriggerCounters& counters_;
  int nic_;
};

}  // namespace cpufree
