#include "cpufree/bindings/core/kernels.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpufree/base/code_cache.hpp"
#include "cpufree/plugins/cpu/kernel_source.hpp"
#include "cpufree/plugins/cpu/levels.hpp"

namespace nb = nanobind;

namespace cpufree {

namespace {

// The compiler is started in Python, as that of programs is.
const void* compile(const CpuKernelText& kernel) {
  const nb::gil_scoped_acquire gil;
  const nb::object solver_kernel =
      nb::module_::import_("cpufree.cpu_kernels").attr("solver_kernel");
  const nb::object address =
      solver_kernel(kernel.name, kernel.text, kernel.flags, kernel.built_in_all);
  return reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(address));
}

std::optional<std::string> keep(const CodeCache& cache, const std::string& key,
                                const nb::bytes& code) {
  return cache.keep(key, std::string(code.c_str(), code.size()));
}

CodeClaim claim(const CodeCache& cache, const std::string& key) {
  const nb::gil_scoped_release release;  // another process may take long
  return cache.claim(key);
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("cpu_level", &cpu_level);
  m.def("cpu_levels", &cpu_levels);
  m.def("cpu_lacks", &cpu_lacks);
  m.def("take_built_in_kernels", &take_built_in_cpu_kernels, nb::arg("taken"));
  nb::class_<CodeClaim>(m, "CodeClaim");
  nb::class_<CodeCache>(m, "CodeCache")
      .def(nb::init<std::vector<std::string>>(), nb::arg("folders"))
      .def("find_file", &CodeCache::find_file, nb::arg("key"))
      .def("keep", &keep, nb::arg("key"), nb::arg("code"))
      .def("claim", &claim, nb::arg("key"));
  set_cpu_kernel_compiler(compile);
}

}  // namespace cpufree
