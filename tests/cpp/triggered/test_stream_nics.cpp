// NICs whose work is done by streams, copy engines and proxies, on the stand-in of a GPU's runtime:
// the rules, payloads, nothing lost, and what becomes of operations that never fire. Threads stand
// for blocks of kernels; a thread keeps the streams going.
#include "cpufree/base/error.hpp"
#include "cpufree/gpu/device.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/triggered/nics/copy_engine/nics.hpp"
#include "cpufree/triggered/nics/proxy/nics.hpp"
#include "nics_rig.hpp"

using namespace cpufree;
using nics::GpuNics;
using nics_rig::HostPort;
using trigger_scripts::rules::TriggerScript;

namespace {

constexpr int kLess = harness::shorter(1, 10);

// Lets the stand-in's streams go on, as a GPU does by itself.
class Pump {
 public:
  Pump()
      : thread_([this] {
          while (!ended_) gpuRelax();
        }) {}
  ~Pump() {
    ended_ = true;
    thread_.join();
  }
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// PEs on devices of the stand-in, with two buffers of doubles, and NICs.
struct Rig {
  SymmetricLayout layout;
  TriggerLayout triggers;
  CounterLayout counters;
  Symmetric<double> source, target;
  std::vector<gpu::DeviceArray<std::byte>> memory;
  std::vector<std::byte*> heaps;
  Pump pump;
  std::unique_ptr<GpuNics> nics;

  Rig(const std::string& back_end, const TriggerSizes& sizes, std::size_t values,
      bool at_end = false)
      : triggers(layout, sizes), counters(layout, sizes.operations) {
    source = layout.reserve<double>(values);
    target = layout.reserve<double>(values);
    nics::GpuNicsConfig config;
    for (int pe = 0; pe < sizes.pes; ++pe) {
      memory.emplace_back(pe, layout.bytes());
      heaps.push_back(memory.back().data());
      config.devices.push_back(pe);
    }
    config.nics.layout = &triggers;
    config.nics.heaps = heaps.data();
    config.nics.bytes = layout.bytes();
    config.nics.times = true;
    config.nics.wait_limit = std::chrono::seconds(300);
    config.counters = &counters;
    nics = back_end == "proxy" ? nics::make_proxy_nics(config)
                               : nics::make_copy_engine_nics(config, {at_end, 4});
    nics->add_buffer("source", source.offset, values * sizeof(double));
    nics->add_buffer("target", target.offset, values * sizeof(double));
  }
  double* source_of(int pe) const { return source.at(heaps[static_cast<std::size_t>(pe)]); }
  double* target_of(int pe) const { return target.at(heaps[static_cast<std::size_t>(pe)]); }
};

// The verbs of a block, whatever the NIC takes.
class Block {
 public:
  Block(const Rig& rig, int pe, int block)
      : port_(rig.heaps.data(), {pe, rig.triggers.sizes().pes, block, rig.triggers.sizes().blocks},
              std::chrono::seconds(300)),
        board_(rig.nics->board(pe)),
        counters_(rig.nics->counters(pe)),
        counts_(rig.nics->counts_by_words()),
        packets_(port_, board_, pe),
        words_(port_, board_, counters_, pe) {}
  bool trigger(TriggerTag tag, const TriggerFields& fields = {}) {
    return counts_ ? words_.trigger(tag) : packets_.trigger(tag, fields);
  }
  bool trigger(TriggerGrain grain, TriggerTag tag, std::int64_t items) {
    return counts_ ? words_.trigger(grain, tag, items) : packets_.trigger(grain, tag, items);
  }
  TriggerWaits<HostPort> waits() { return {port_, board_}; }

 private:
  HostPort port_;
  TriggerBoard board_;
  TriggerCounters counters_;
  bool counts_;
  Triggers<HostPort> packets_;
  CounterTriggers<HostPort> words_;
};

trigger_scripts::rules::TriggerOutcome replay(const TriggerScript& script,
                                              const std::string& back_end) {
  const int actors = static_cast<int>(script.actors.size());
  Rig rig(back_end, {2, actors, 4, 20, 1}, 16);
  std::vector<std::thread> threads;
  for (int a = 0; a < actors; ++a)
    threads.emplace_back([&rig, &script, a] {
      Block block(rig, 0, a);
      for (const auto& step : script.actors[static_cast<std::size_t>(a)]) {
        if (step.posts) {
          TriggerOperation o = trigger_scripts::operation_of(step.post);
          o.pe = 1;
          o.source = rig.source.offset;
          o.target = rig.target.offset;
          o.bytes = o.open == 0U ? 2 * sizeof(double) : 0;
          rig.nics->post(0, o);
        } else if (!block.trigger(trigger_scripts::tag_of(step.tag),
                                  trigger_scripts::fields_of(step.fields))) {
          return;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  const nics::NicReport report = rig.nics->stop();
  return nics_rig::outcome_of(*rig.nics, report);
}

bool is_dynamic(const TriggerScript& script) {
  for (const auto& actor : script.actors)
    for (const auto& step : actor)
      if (step.post.open != 0U || step.fields.given != 0U) return true;
  return false;
}

void check_scripts(const std::string& back_end, bool dynamic, int expected) {
  int replayed = 0;
  for (const auto& script : trigger_scripts::all()) {
    if (!dynamic && is_dynamic(script)) continue;
    ++replayed;
    for (int k = 0; k < 3; ++k)
      if (!CHECK(replay(script, back_end) == script.expected))
        std::cerr << "script " << script.name << std::endl;
  }
  CHECK_EQ(replayed, expected);
}

// Each PE sends to the next one from two buffers in turn; blocks trigger together. Wrong values.
std::int64_t wrong_in_ring(const std::string& back_end, int blocks, std::uint32_t epochs) {
  constexpr int kPes = 2, kValues = 12;
  Rig rig(back_end, {kPes, blocks, 8, 2, 2}, 2 * kValues);
  for (int pe = 0; pe < kPes; ++pe) {
    TriggerOperation data;
    data.epochs = epochs;
    data.threshold = static_cast<std::uint64_t>(blocks);
    data.pe = 1 - pe;
    data.source = rig.source.offset;
    data.target = rig.target.offset;
    data.bytes = data.source_step = data.target_step = kValues * sizeof(double);
    data.slots = 2;
    data.signal = 0;
    TriggerOperation read = data;
    read.first = {1, 0};
    read.bytes = 0;
    read.signal = 1;
    rig.nics->post(pe, data);
    rig.nics->post(pe, read);
  }
  std::atomic<std::int64_t> wrong = 0, given_up = 0;
  const auto run = [&](int pe, int b) {
    Block block(rig, pe, b);
    auto waits = block.waits();
    for (std::uint32_t e = 0; e < epochs; ++e) {
      const int slot = static_cast<int>(e % 2) * kValues;
      if (e >= 2 && (!waits.wait_done({0, e - 2}) || !waits.wait_signal(1, e - 2, 1 - pe)))
        return ++given_up;
      for (int i = b; i < kValues; i += blocks)
        rig.source_of(pe)[slot + i] = 1e6 * pe + 8.0 * e + i;
      if (!block.trigger({0, e}) || !waits.wait_signal(0, e, 1 - pe)) return ++given_up;
      for (int i = 0; i < kValues; ++i)
        wrong += rig.target_of(pe)[slot + i] == 1e6 * (1 - pe) + 8.0 * e + i ? 0 : 1;
      if (!block.trigger({1, e})) return ++given_up;
    }
    return given_up.load();
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < kPes * blocks; ++k) threads.emplace_back(run, k / blocks, k % blocks);
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(given_up.load(), 0);
  const nics::NicReport report = rig.nics->stop();
  CHECK(report.waiting.empty() && report.faults.empty());
  CHECK_EQ(rig.nics->firings(0).size(), std::size_t{2} * epochs);
  return wrong;
}

TriggerOperation put_of(const Rig& rig) {
  TriggerOperation put;
  put.first = {2, 0};
  put.pe = 1;
  put.source = rig.source.offset;
  put.target = rig.target.offset;
  put.bytes = 4 * sizeof(double);
  put.signal = 0;
  return put;
}

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) std::cerr << text << std::endl;
  return found;
}

}  // namespace

TEST(copy_engine_agrees_with_the_rules_on_every_script_without_fields) {
  check_scripts("copy_engine", false, 16);
}

TEST(proxy_agrees_with_the_rules_on_every_script) { check_scripts("proxy", true, 22); }

TEST(copy_engine_delivers_every_payload_of_a_long_run) {
  CHECK_EQ(wrong_in_ring("copy_engine", 1, 400 / kLess), 0);
  CHECK_EQ(wrong_in_ring("copy_engine", 2, 200 / kLess), 0);
}

TEST(proxy_delivers_every_payload_of_a_long_run) {
  CHECK_EQ(wrong_in_ring("proxy", 1, 400 / kLess), 0);
  CHECK_EQ(wrong_in_ring("proxy", 2, 200 / kLess), 0);
}

TEST(proxy_refuses_a_place_outside_of_all_buffers) {
  Rig rig("proxy", {2, 1, 8, 4, 1}, 8);
  TriggerOperation put;
  put.pe = 1;
  put.source = rig.source.offset;
  put.bytes = 8 * sizeof(double);
  put.open = TriggerFields::target;
  rig.nics->post(0, put);
  rig.source_of(0)[7] = 5.0;
  Block block(rig, 0, 0);
  block.trigger({0, 0}, {TriggerFields::target, {0, rig.target.offset + 8}});
  const std::string text = describe(rig.nics->stop());
  CHECK(contains(text,
                 "tag 0, epoch 0: not carried out: the target that a trigger supplies is "
                 "bytes 8 to 72 of buffer 'target', which has 64"));
  CHECK_EQ(rig.target_of(1)[7], 0.0);
}

TEST(signals_are_copied_where_streams_write_no_words_of_other_devices) {
  host_gpu::Settings settings;
  settings.peer_words = false;
  host_gpu::configure(settings);
  CHECK_EQ(wrong_in_ring("copy_engine", 1, 200 / kLess), 0);
  host_gpu::configure({});
}

TEST(no_trigger_of_many_threads_is_lost_by_counters) {
  constexpr int kThreads = 16, kEach = 2000 / kLess;
  Rig rig("copy_engine", {2, kThreads, 8, 4, 1}, 16);
  TriggerOperation put = put_of(rig);
  put.threshold = static_cast<std::uint64_t>(kThreads) * kEach;
  rig.nics->post(0, put);
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back(
        [&rig, k] { Block(rig, 0, k).trigger(TriggerGrain::uniform_kernel, {2, 0}, kEach); });
  for (std::thread& thread : threads) thread.join();
  const nics::NicReport report = rig.nics->stop();
  CHECK(report.waiting.empty() && report.faults.empty());
  CHECK_EQ(rig.nics->firings(0).size(), std::size_t{1});
}

// What has not fired leaves no trace when the NICs end, though its stream has to be let go.
TEST(operations_that_never_fired_change_nothing_when_copy_engines_end) {
  Rig rig("copy_engine", {2, 1, 8, 4, 1}, 16);
  TriggerOperation put = put_of(rig);
  put.threshold = 3;
  put.epochs = 100;
  rig.nics->post(0, put);
  rig.source_of(0)[0] = 5.0;
  rig.target_of(1)[0] = 7.0;
  Block block(rig, 0, 0);
  block.trigger({2, 0});
  block.trigger({2, 0});
  const nics::NicReport report = rig.nics->stop();
  CHECK_EQ(report.waiting.size(), std::size_t{1});
  CHECK(contains(describe(report), "tag 2, epoch 0: 2 of 3 triggers seen, operation posted"));
  CHECK_EQ(rig.target_of(1)[0], 7.0);
  CHECK_EQ(rig.nics->board(1).signals[0].value, Epoch{0});
  CHECK_EQ(rig.nics->board(0).done[2].value, Epoch{0});
  CHECK(rig.nics->firings(0).empty());
}

TEST(stray_triggers_are_counted_when_their_word_is_armed_again) {
  Rig rig("copy_engine", {2, 1, 8, 4, 1}, 16);
  TriggerOperation put = put_of(rig);
  put.epochs = 2 * TriggerCounters::kWindow;
  rig.nics->post(0, put);
  Block block(rig, 0, 0);
  for (std::uint32_t e = 0; e < put.epochs; ++e)
    for (int k = 0; k < (e == 1 ? 3 : 1); ++k) CHECK(block.trigger({2, e}));
  CHECK(block.trigger({2, 0}));  // late
  const nics::NicReport report = rig.nics->stop();
  CHECK(report.waiting.empty());
  CHECK_EQ(rig.nics->firings(0).size(), std::size_t{put.epochs});
  const std::string text = describe(report);
  CHECK(contains(text, "tag 2, epoch 1: 2 triggers more than the threshold"));
  CHECK(contains(text, "tag 2, epoch 0: 1 trigger more than the threshold"));
}

TEST(puts_of_on_stream_wait_for_the_end_of_a_kernel) {
  Rig rig("copy_engine", {2, 1, 8, 4, 1}, 16, true);
  rig.nics->post(0, put_of(rig));
  rig.source_of(0)[0] = 5.0;
  const gpu::Stream kernels(0);
  Block(rig, 0, 0).trigger({2, 0});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_EQ(rig.target_of(1)[0], 0.0);
  rig.nics->launched(0, kernels);
  CHECK(rig.nics->stop().waiting.empty());
  CHECK_EQ(rig.target_of(1)[0], 5.0);
}

TEST(who_uses_too_many_devices_beside_others_is_told_so) {
  host_gpu::Settings settings;
  settings.peer_memory = false;
  host_gpu::configure(settings);
  const std::string said = message_of([] { gpu::reach(1); });
  host_gpu::configure({});
  CHECK(contains(said, "too many processes use several of these GPUs at the same time"));
}

TEST(copy_engines_refuse_what_they_cannot_do) {
  Rig rig("copy_engine", {2, 1, 8, 20, 1}, 16);
  const auto refusal = [&](const TriggerOperation& o) {
    return message_of([&] { rig.nics->post(0, o); });
  };
  TriggerOperation put = put_of(rig);
  put.open = TriggerFields::target;
  CHECK(contains(refusal(put), "tag 2: dynamic triggers need the back end block or proxy"));
  put = put_of(rig);
  put.reports = 1;
  CHECK(contains(refusal(put), "copy engines have no queues of arrivals"));
  put = put_of(rig);
  put.epochs = 10;
  CHECK_EQ(refusal(put), "nothing was thrown");
  put.first.epoch = 10;
  put.threshold = 2;
  CHECK(contains(refusal(put), "one threshold for all epochs of an operation, which is 1"));
  for (std::uint32_t tag = 3; tag < 6; ++tag) {
    put = put_of(rig);
    put.first = {tag, 0};
    CHECK_EQ(refusal(put), "nothing was thrown");
  }
  put.first = {6, 0};
  CHECK(contains(refusal(put), "have streams for 4 operations, and all are taken"));
}
