#include "cpufree/systems/gpu/compiled/kernel_codes.hpp"

#include "cpufree/base/parallel.hpp"

namespace cpufree {

std::vector<std::string> codes_of(const std::vector<std::string>& sources,
                                  const std::string& architecture, const CodeMaker& maker,
                                  const CodeCache& cache) {
  std::vector<std::string> codes(sources.size());
  in_parallel(static_cast<int>(sources.size()), [&](int number) {
    const auto k = static_cast<std::size_t>(number);
    const std::uint64_t key = hash_of({sources[k], architecture, maker.version});
    if (auto code = cache.find(key)) {
      codes[k] = *std::move(code);
      return;
    }
    codes[k] = maker.compile(sources[k], architecture);
    cache.keep(key, codes[k]);
  });
  return codes;
}

}  // namespace cpufree
