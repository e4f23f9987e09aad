#include "cpufree/launch/waits.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace cpufree {

namespace {

constexpr int kMostLines = 16;

std::string name(int pe, int block) {
  return "block " + std::to_string(block) + " of PE " + std::to_string(pe);
}

const char* doing(BlockState state) {
  switch (state) {
    case BlockState::absent:
      return "never started";
    case BlockState::running:
      return "was computing, or died";
    case BlockState::finished:
      return "had left its kernel";
    default:
      return "was waiting itself";
  }
}

std::string line_of(const BlockReport& b) {
  char text[256];
  std::snprintf(text, sizeof(text), "%s waited %.3f s for %s (%s, epoch %llu, last seen %llu)",
                name(b.pe, b.block).c_str(), b.record.seconds,
                name(b.record.from_pe, b.record.from_block).c_str(), channel_name(b.record.channel),
                static_cast<unsigned long long>(b.record.want),
                static_cast<unsigned long long>(b.record.seen));
  return text;
}

// Whether this block kept one waiting that waited for it so long: it did not wait itself, or only
// at the end, as one of a process that was stopped for a while.
bool is_late(const BlockReport& b, double seconds) {
  return !b.record.waited() || 2.0 * b.record.seconds < seconds;
}

std::string line_of_late(const BlockReport& b) {
  if (!b.record.waited())
    return "waited for, and not waiting: " + name(b.pe, b.block) + ", which " +
           doing(b.record.state);
  char text[256];
  std::snprintf(text, sizeof(text),
                "waited for, and late: %s, which had waited itself for only %.3f s: it was slow, "
                "or its process stopped for a while",
                name(b.pe, b.block).c_str(), b.record.seconds);
  return text;
}

}  // namespace

std::string describe_waits(const std::vector<BlockReport>& blocks) {
  std::map<std::pair<int, int>, const BlockReport*> known;
  for (const BlockReport& b : blocks) known[{b.pe, b.block}] = &b;
  std::string text;
  std::map<std::pair<int, int>, const BlockReport*> late;  // waited for by others
  int lines = 0;
  for (const BlockReport& b : blocks) {
    if (!b.record.waited()) continue;
    if (++lines <= kMostLines) text += "\n  " + line_of(b);
    const auto from = known.find({b.record.from_pe, b.record.from_block});
    if (from != known.end() && is_late(*from->second, b.record.seconds)) late.insert(*from);
  }
  const auto more = [](int all) {
    return all > kMostLines ? "\n  ... and " + std::to_string(all - kMostLines) + " more" : "";
  };
  text += more(lines);
  int listed = 0;
  for (const auto& [key, block] : late)
    if (++listed <= kMostLines) text += "\n  " + line_of_late(*block);
  text += more(listed);
  if (late.empty() && lines > 0)
    text += "\n  all of them waited for one another: a signal was lost or never sent";
  return text;
}

WaitTimeout::WaitTimeout(std::vector<BlockReport> blocks)
    : EngineError(
          "a block waited for another one longer than allowed; all PEs have left their "
          "kernels" +
          describe_waits(blocks) + "\n  if the machine was merely overloaded, raise wait_limit"),
      blocks_(std::move(blocks)) {}

void report_waits(Team* team, const std::vector<WaitRecord>& records, int blocks, bool gave_up,
                  double wait_limit) {
  if (team == nullptr) {
    if (gave_up) throw WaitTimeout(block_reports(records, blocks));
    return;
  }
  const double seconds = kAnswerSeconds + (gave_up ? 0.0 : wait_limit);
  const std::vector<std::int32_t> mine{gave_up ? 1 : 0};
  const auto all =
      joined<std::int32_t>(team->all_gather_within("end of a kernel", bytes_of(mine), seconds));
  if (std::ranges::max(all) == 0) return;
  const auto parts = team->all_gather_within("records of waits", bytes_of(records), kAnswerSeconds);
  throw WaitTimeout(block_reports(joined<WaitRecord>(parts), blocks));
}

}  // namespace cpufree
