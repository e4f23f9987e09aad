#include "cpufree/launch/gpu/compiled/kernel_codes.hpp"

#include <atomic>

#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {
std::atomic<int> being_made = 0;
struct Making {
  Making() { ++being_made; }
  ~Making() { --being_made; }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
};
}  // namespace

int codes_being_made() { return being_made; }

std::string code_of(const std::string& source, const std::string& architecture,
                    const CodeMaker& maker, const CodeCache& cache) {
  const std::string key = digits_of(hash_of({source, architecture, maker.version}));
  if (auto code = cache.find(key)) return *std::move(code);
  const CodeClaim mine = cache.claim(key);
  if (auto code = cache.find(key)) return *std::move(code);  // another process has made it
  const Making one;
  std::string code = maker.compile(source, architecture);
  cache.keep(key, code);
  return code;
}

std::vector<std::string> codes_of(const std::vector<std::string>& sources,
                                  const std::string& architecture, const CodeMaker& maker,
                                  const CodeCache& cache) {
  std::vector<std::string> codes(sources.size());
  in_parallel(static_cast<int>(sources.size()), [&](int number) {
    const auto k = static_cast<std::size_t>(number);
    codes[k] = code_of(sources[k], architecture, maker, cache);
  });
  return codes;
}

std::vector<CodesInTheMaking::Code> CodesInTheMaking::get(
    const std::vector<std::string>& names,
    const std::function<std::string(const std::string&)>& make) {
  std::vector<Code> codes;
  std::vector<std::pair<std::string, std::promise<std::string>>> mine;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names) {
      Code& code = codes_[name];
      if (!code.valid()) {
        mine.emplace_back(name, std::promise<std::string>());
        code = mine.back().second.get_future().share();
      }
      codes.push_back(code);
    }
  }
  in_parallel(static_cast<int>(mine.size()), [&](int k) {
    auto& [name, promise] = mine[static_cast<std::size_t>(k)];
    try {
      promise.set_value(make(name));
    } catch (...) {
      forget(name);
      promise.set_exception(std::current_exception());
    }
  });
  return codes;
}

void CodesInTheMaking::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  codes_.erase(name);
}

}  // namespace cpufree
