// Scripts of posts and triggers (reference/trigger_script.hpp), replayed on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/triggered/gpu/studies.hpp"

namespace cpufree::triggered {

struct ScriptReplay {
  std::string name;
  std::string skipped;  // why it was not replayed; empty where it was
  int replays = 0;
  int wrong = 0;           // of them, with another outcome than expected
  std::string difference;  // the first of these
};

// Actors that trigger are blocks of one kernel of PE 0; those that post are threads of the host.
// They take their turns as they like; `replays` of each script, every other one with posts before
// the launch.
std::vector<ScriptReplay> replay_scripts(const std::string& text, const std::vector<int>& devices,
                                         const std::string& back_end, int replays,
                                         const Look& look);

}  // namespace cpufree::triggered
