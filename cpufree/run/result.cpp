#include "cpufree/run/result.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

namespace cpufree {

namespace {

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

}  // namespace

std::string describe_waits(const std::vector<BlockReport>& blocks) {
  std::string text;
  std::set<std::pair<int, int>> silent;  // waited for, and not waiting
  int lines = 0;
  for (const BlockReport& b : blocks) {
    if (!b.record.waited()) continue;
    if (++lines <= 16) text += "\n  " + line_of(b);
    const auto from = std::ranges::find_if(blocks, [&](const BlockReport& other) {
      return other.pe == b.record.from_pe && other.block == b.record.from_block;
    });
    if (from != blocks.end() && !from->record.waited()) silent.insert({from->pe, from->block});
  }
  if (lines > 16) text += "\n  ... and " + std::to_string(lines - 16) + " more";
  for (const auto& [pe, block] : silent) {
    const auto from = std::ranges::find_if(
        blocks, [&](const BlockReport& b) { return b.pe == pe && b.block == block; });
    text += "\n  waited for, and not waiting: " + name(pe, block) + ", which " +
            doing(from->record.state);
  }
  if (silent.empty() && lines > 0)
    text += "\n  all of them waited for one another: a signal was lost or never sent";
  return text;
}

WaitTimeout::WaitTimeout(std::vector<BlockReport> blocks)
    : EngineError(
          "a block waited for another one longer than allowed; all PEs have left their "
          "kernels" +
          describe_waits(blocks) + "\n  if the machine was merely overloaded, raise wait_limit"),
      blocks_(std::move(blocks)) {}

void report_waits(Team* team, const std::vector<WaitRecord>& records, int blocks, bool gave_up) {
  if (team == nullptr) {
    if (gave_up) throw WaitTimeout(block_reports(records, blocks));
    return;
  }
  if (most(*team, "end of a kernel", gave_up ? 1 : 0) == 0) return;
  throw WaitTimeout(block_reports(join(*team, "records of waits", records), blocks));
}

}  // namespace cpufree
