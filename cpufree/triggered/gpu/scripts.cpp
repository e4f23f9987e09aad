#include "cpufree/triggered/gpu/scripts.hpp"

#include <thread>

#include "cpufree/reference/trigger_script.hpp"
#include "cpufree/triggered/gpu/rig.hpp"

namespace cpufree::triggered {

namespace {

namespace rules = cpufree::reference;

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

TriggerTag tag_of(rules::TriggerTag tag) { return {tag.operation, tag.epoch}; }
rules::TriggerTag tag_of(TriggerTag tag) { return {tag.operation, tag.epoch}; }
TriggerFields fields_of(const rules::TriggerFields& from) {
  TriggerFields to;
  to.given = from.given;
  for (int k = 0; k < kTriggerFields; ++k) to.value[k] = from.value[at(k)];
  return to;
}
rules::TriggerFields fields_of(const TriggerFields& from) {
  rules::TriggerFields to;
  to.given = from.given;
  for (int k = 0; k < kTriggerFields; ++k) to.value[at(k)] = from.value[k];
  return to;
}

std::string text_of(rules::TriggerTag tag) {
  return std::to_string(tag.operation) + "." + std::to_string(tag.epoch);
}
std::string text_of(const rules::TriggerOutcome& outcome) {
  std::string text;
  for (const auto& f : outcome.fired) text += " fires " + text_of(f.tag);
  for (const auto& tag : outcome.refused) text += " refuses " + text_of(tag);
  for (const auto& [tag, count] : outcome.strays)
    text += " strays " + text_of(tag) + ":" + std::to_string(count);
  for (const auto& [tag, count] : outcome.waiting)
    text += " waits " + text_of(tag) + ":" + std::to_string(count);
  return text.empty() ? " nothing" : text;
}

class Replay {
 public:
  static constexpr int kOperations = 20;

  Replay(const rules::TriggerScript& script, const std::vector<int>& devices,
         const std::string& back_end)
      : script_(script),
        actors_(static_cast<int>(script.actors.size())),
        rig_(devices, {static_cast<int>(devices.size()), actors_, 8, kOperations, 1}, 10.0),
        source_(rig_.layout.reserve<double>(16)),
        target_(rig_.layout.reserve<double>(16)) {
    rig_.options.times = true;
    rig_.options.operations = 4;
    rig_.allocate();
    collect_steps();
    kernel_ = steps_kernel(GpuRig::counts_by_words(back_end));
    rig_.prepare(kernel_, grid(), back_end);
    rig_.make_nics(back_end);
    rig_.nics->add_buffer("source", source_.offset, 16 * sizeof(double));
    rig_.nics->add_buffer("target", target_.offset, 16 * sizeof(double));
  }

  rules::TriggerOutcome run(bool posts_first, const Look& look) {
    return rig_.guarded([&] { return run_all(posts_first, look); });
  }

 private:
  rules::TriggerOutcome run_all(bool posts_first, const Look& look) {
    if (posts_first) post_all();
    const StepsArgs args{rig_.verbs(0), steps_.data(), first_.data(),
                         nullptr,       taken_.data(), arrivals_.data()};
    rig_.pes.launch(0, kernel_, grid(), &args);
    rig_.nics->launched(0, rig_.pes.stream(0));
    if (!posts_first) post_all();
    rig_.finish(look);
    if (!posts_first && rig_.options.back_end == "on_stream")
      rig_.nics->launched(0, rig_.pes.stream(0));  // those posts are behind a kernel as well
    return outcome();
  }

  gpu::Grid grid() const { return {actors_, 32, 0}; }

  void collect_steps() {
    std::vector<Step> steps;
    std::vector<std::int64_t> first{0};
    for (const auto& actor : script_.actors) {
      for (const rules::TriggerStep& from : actor) {
        if (from.posts) continue;
        Step step;
        step.kind = Step::Kind::trigger;
        step.tag = tag_of(from.tag);
        step.fields = fields_of(from.fields);
        steps.push_back(step);
      }
      first.push_back(static_cast<std::int64_t>(steps.size()));
    }
    const int device = rig_.pes.device(0);
    steps_ = gpu::DeviceArray<Step>(device, steps);
    first_ = gpu::DeviceArray<std::int64_t>(device, first);
    taken_ = gpu::DeviceArray<Epoch>(device, at(rig_.pes.count()));
    arrivals_ = gpu::DeviceArray<TriggerTag>(device, steps.size());
  }

  // Something to copy, where no trigger says what.
  TriggerOperation operation_of(const rules::TriggerPost& post) const {
    TriggerOperation o;
    o.first = tag_of(post.first);
    o.threshold = post.threshold;
    o.epochs = post.epochs;
    o.open = post.open;
    o.pe = rig_.pes.count() - 1;
    o.source = source_.offset;
    o.target = target_.offset;
    o.bytes = o.open == 0U ? 2 * sizeof(double) : 0;
    return o;
  }

  void post_all() {
    std::vector<std::jthread> hosts;
    for (const auto& actor : script_.actors)
      hosts.emplace_back([this, &actor] {
        for (const rules::TriggerStep& step : actor)
          if (step.posts) rig_.nics->post(0, operation_of(step.post));
      });
  }

  rules::TriggerOutcome outcome() {
    const nics::NicReport report = rig_.nics->stop();
    rules::TriggerOutcome out;
    for (const auto& f : rig_.nics->firings(0))
      out.fired.push_back({tag_of(f.tag), fields_of(f.fields)});
    for (const auto& f : report.faults) {
      if (f.fault.refused())
        out.refused.push_back(tag_of(f.fault.tag));
      else
        out.strays[tag_of(f.fault.tag)] += f.fault.count;
    }
    for (const auto& w : report.waiting) out.waiting[tag_of(w.tag)] = w.seen;
    out.sort();
    return out;
  }

  const rules::TriggerScript& script_;
  int actors_;
  GpuRig rig_;
  Symmetric<double> source_, target_;
  gpu::DeviceArray<Step> steps_;
  gpu::DeviceArray<std::int64_t> first_;
  gpu::DeviceArray<Epoch> taken_;
  gpu::DeviceArray<TriggerTag> arrivals_;
  const void* kernel_ = nullptr;
};

bool is_dynamic(const rules::TriggerScript& script) {
  for (const auto& actor : script.actors)
    for (const rules::TriggerStep& step : actor)
      if (step.post.open != 0U || step.fields.given != 0U) return true;
  return false;
}

}  // namespace

std::vector<ScriptReplay> replay_scripts(const std::string& text, const std::vector<int>& devices,
                                         const std::string& back_end, int replays,
                                         const Look& look) {
  std::vector<ScriptReplay> all;
  for (const rules::TriggerScript& script : rules::TriggerScriptReader::read(text)) {
    ScriptReplay& one = all.emplace_back();
    one.name = script.name;
    if (is_dynamic(script) && GpuRig::counts_by_words(back_end)) {
      one.skipped = "copy engines refuse dynamic triggers";
      continue;
    }
    for (; one.replays < replays; ++one.replays) {
      const auto got = Replay(script, devices, back_end).run(one.replays % 2 == 0, look);
      if (got == script.expected) continue;
      if (one.wrong++ == 0)
        one.difference = "expected" + text_of(script.expected) + ", got" + text_of(got);
    }
  }
  return all;
}

}  // namespace cpufree::triggered
