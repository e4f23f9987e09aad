// A process of those in which each PE of a baseline is one, which NVSHMEM connects.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/drivers/check.hpp"
#include "cpufree/baselines/nvshmem_library.hpp"

namespace cpufree::baselines {

// An id in hexadecimal.
inline std::string text_of(const ShmemId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : id) {
    text += kDigits[static_cast<unsigned char>(byte) / 16];
    text += kDigits[static_cast<unsigned char>(byte) % 16];
  }
  return text;
}
inline ShmemId id_of(const std::string& text) {
  ShmemId id = {};
  require(text.size() == 2 * id.size() &&
              text.find_first_not_of("0123456789abcdef") == std::string::npos,
          "nvshmem_id is not what nvshmem_id() of PE 0 has returned");
  for (std::size_t k = 0; k < id.size(); ++k)
    id[k] = static_cast<char>(std::stoi(text.substr(2 * k, 2), nullptr, 16));
  return id;
}

// What a process has before it waits for the others.
struct Process {
  int gpu = 0;
  ShmemLibrary library;
  ShmemId id = {};
};

// Of a spec that names `rank` and what goes with it. Makes its GPU current, which NVSHMEM goes by.
// Throws what is wrong with the machine or the options.
template <class Spec>
Process process_of(const Spec& spec) {
  require(spec.rank >= 0 && spec.rank < spec.pes,
          "rank must lie between 0 and pes - 1, not " + std::to_string(spec.rank));
  const std::vector<int> gpus = gpus_of(spec.kind, spec.pes, spec.gpus);
  Process process;
  process.gpu = gpus[at(spec.rank)];
  for (const int gpu : gpus)
    if (gpu != process.gpu) check_reach(process.gpu, gpu, spec.kind);
  gpu::stay_on(process.gpu);
  process.library = load_shmem(spec.nvshmem_library);
  process.id = id_of(spec.nvshmem_id);
  return process;
}

}  // namespace cpufree::baselines
