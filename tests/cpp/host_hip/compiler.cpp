// A stand-in of hiprtc, the compiler of kernels for AMD's GPUs: it looks whether it is given all
// that it would need, and its code is the text, which the stand-in of the runtime knows again.
#include "hip_names.hpp"
// Behind what says whose GPUs are meant.
#include <hip/hiprtc.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "kernels.hpp"

#pragma GCC visibility push(default)

struct _hiprtcProgram {
  std::string text, log, code;
  std::vector<std::string> headers;
  std::set<std::string> names;
};

namespace {

// What a text includes that no header is for. What is for another vendor is not read.
std::string lacking(const std::string& text, const std::set<std::string>& names) {
  static const std::regex include("(^|\n)#include [\"<]([^\">]+)[\">]");
  for (std::sregex_iterator k(text.begin(), text.end(), include), end; k != end; ++k)
    if (const std::string name = (*k)[2]; !names.contains(name) && name.find("/cuda/") == name.npos)
      return name;
  return "";
}

std::string flaw_of(const _hiprtcProgram& program, const std::vector<std::string>& options) {
  const std::string begin = "#include \"cpufree/gpu/hip/prelude.hpp\"\n";
  if (!program.text.starts_with(begin)) return "the text does not begin with the prelude";
  if (program.text.find("#include \"cpufree/gpu/hip/end.hpp\"") == std::string::npos)
    return "what the prelude begins has no end";
  if (const std::string one = lacking(program.text, program.names); !one.empty())
    return "there is no header " + one;
  for (const std::string& header : program.headers)
    if (const std::string one = lacking(header, program.names); !one.empty())
      return "there is no header " + one;
  for (const char* needed : {"-std=c++20", "-O3"})
    if (std::find(options.begin(), options.end(), needed) == options.end())
      return std::string("option ") + needed + " is missing";
  return "";
}

hiprtcResult copy(const std::string& text, char* to) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return HIPRTC_SUCCESS;
}

}  // namespace

extern "C" {

const char* hiprtcGetErrorString(hiprtcResult result) {
  return result == HIPRTC_SUCCESS ? "HIPRTC_SUCCESS" : "HIPRTC_ERROR_COMPILATION";
}
hiprtcResult hiprtcVersion(int* major, int* minor) {
  *major = 6;
  *minor = 2;
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcCreateProgram(hiprtcProgram* program, const char* text, const char*, int count,
                                 const char** headers, const char** names) {
  *program = new _hiprtcProgram{text, "", "", {headers, headers + count}, {names, names + count}};
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcDestroyProgram(hiprtcProgram* program) {
  delete *program;
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, const char** given) {
  const std::vector<std::string> options(given, given + count);
  const std::string target = "--offload-arch=";
  program->log = flaw_of(*program, options);
  if (options.empty() || !options[0].starts_with(target)) program->log = "no architecture";
  if (!program->log.empty()) return HIPRTC_ERROR_COMPILATION;
  program->code = host_hip::kMagic + options[0].substr(target.size()) + "\n" + program->text;
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char* to) { return copy(program->log, to); }
hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, std::size_t* bytes) {
  *bytes = program->code.size() + 1;
  return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetCode(hiprtcProgram program, char* to) { return copy(program->code, to); }

}  // extern "C"
#pragma GCC visibility pop
