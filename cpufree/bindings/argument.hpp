// A vector argument from Python: a NumPy array, or an array on a GPU that offers DLPack or
// `__cuda_array_interface__`.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// Borrows the array and keeps it alive. None is an empty vector. Throws InvalidInput for what is no
// contiguous vector of type T; `name` is what the message calls it.
template <class T>
class Argument {
 public:
  Argument(const nanobind::object& object, const char* name) {
    namespace nb = nanobind;
    if (object.is_none()) return;
    if (nb::try_cast(object, on_host_, false)) {
      view = {on_host_.data(), on_host_.size()};
    } else if (nb::hasattr(object, "__cuda_array_interface__")) {
      // Asked first: it moves nothing, and CuPy, Numba and PyTorch all have it.
      read_interface(nb::cast<nb::dict>(object.attr("__cuda_array_interface__")), name);
    } else if (nb::try_cast(object, on_gpu_, false)) {
      view = {on_gpu_.data(), on_gpu_.size(), on_gpu_.device_id()};
    } else {
      refuse(name, "");
    }
  }

  VectorView<T> view;

 private:
  [[noreturn]] static void refuse(const std::string& name, const std::string& why) {
    throw InvalidInput(name + " must be a contiguous vector of the matrix's type" + why);
  }

  void read_interface(const nanobind::dict& d, const std::string& name) {
    namespace nb = nanobind;
    const char* const type = sizeof(T) == 8 ? "<f8" : "<f4";
    if (nb::cast<std::string>(d["typestr"]) != type)
      refuse(name, ": " + std::string(type) + ", not " + nb::cast<std::string>(d["typestr"]));
    const auto shape = nb::cast<nb::tuple>(d["shape"]);
    if (nb::len(shape) != 1)
      refuse(name, ", but has " + std::to_string(nb::len(shape)) + " dimensions");
    if (d.contains("mask") && !d["mask"].is_none()) refuse(name, " without a mask");
    view.size = nb::cast<std::size_t>(shape[0]);
    if (d.contains("strides") && !d["strides"].is_none() && view.size > 1 &&
        nb::cast<std::int64_t>(nb::cast<nb::tuple>(d["strides"])[0]) !=
            static_cast<std::int64_t>(sizeof(T)))
      refuse(name, ", but its entries are not one behind the other");
    const auto data = nb::cast<nb::tuple>(d["data"]);
    if (!std::is_const_v<T> && nb::cast<bool>(data[1])) refuse(name, " that may be written");
    if (view.size == 0) return;
    view.data = reinterpret_cast<T*>(nb::cast<std::uintptr_t>(data[0]));
    view.device = gpu_engine().gpu_of(view.data);
  }

  nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu> on_host_;
  nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cuda> on_gpu_;
};

}  // namespace cpufree
