#include "cpufree/triggered/back_ends.hpp"

#include <csignal>
#include <functional>
#include <mutex>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"
#include "cpufree/triggered/nics/libfabric/nics.hpp"
#include "cpufree/triggered/nics/thread/nics.hpp"

namespace cpufree::triggered {

namespace {

constexpr const char* kPlugin = "_nics_libfabric.so";

// Keeps what signals do. Loading Debian's libfabric loads libinfinipath, whose constructor installs
// handlers of its own: Ctrl-C would end the process where Python raises KeyboardInterrupt.
class SignalGuard {
 public:
  SignalGuard() {
    for (int k = 1; k < kSignals; ++k) known_[k] = sigaction(k, nullptr, &action_[k]) == 0;
  }
  ~SignalGuard() {
    for (int k = 1; k < kSignals; ++k)
      if (known_[k]) sigaction(k, &action_[k], nullptr);  // of those that cannot be set: no effect
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static constexpr int kSignals = 32;
  bool known_[kSignals] = {};
  struct sigaction action_[kSignals];
};

using Make = nics::Nics*(const nics::NicsConfig*, nics::FabricCalls);

// Loads the plugin, once it has been found for good.
const std::function<Make>& plugin() {
  static std::mutex mutex;
  static std::function<Make> make;
  const std::lock_guard lock(mutex);
  if (make) return make;
  static const char here = 0;
  const std::string path = folder_of(&here) + kPlugin;
  const SignalGuard guard;
  const SharedLibrary library(path.c_str(), "the back end of libfabric",
                              "the same build of cpufree",
                              "install libfabric-dev, and build cpufree again");
  library.find("cpufree_libfabric_nics", make);
  return make;
}

MakeNics libfabric(nics::FabricCalls calls) {
  return [calls](const nics::NicsConfig& config) {
    const SignalGuard guard;  // providers are loaded when they are first asked
    return std::unique_ptr<nics::Nics>(plugin()(&config, calls));
  };
}

}  // namespace

MakeNics nics_named(const std::string& name) {
  if (name == "libfabric") return libfabric(nics::FabricCalls::triggered);
  if (name == "libfabric_queue") return libfabric(nics::FabricCalls::work_queue);
  require(name == "thread", "there is no back end '" + name + "' of triggered operations; choose " +
                                "from thread, libfabric, libfabric_queue");
  return [](const nics::NicsConfig& config) -> std::unique_ptr<nics::Nics> {
    return std::make_unique<nics::ThreadNics>(config);
  };
}

std::string libfabric_missing() {
  try {
    plugin();
    return {};
  } catch (const Unsupported& error) {
    return error.what();
  }
}

}  // namespace cpufree::triggered
