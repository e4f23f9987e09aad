// Errors of the core as the classes of cpufree.errors.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <new>
#include <typeinfo>

#include "cpufree/base/error.hpp"

namespace cpufree {

inline void raise(const char* name, const nanobind::object& arguments) {
  const nanobind::object type = nanobind::module_::import_("cpufree.errors").attr(name);
  PyErr_SetObject(type.ptr(), arguments.ptr());
}
inline void raise(const char* name, const char* message) { raise(name, nanobind::str(message)); }

// The class of cpufree.errors for an entry.
inline const char* class_of(BadEntry::Kind kind) {
  switch (kind) {
    case BadEntry::Kind::not_finite:
      return "NonFiniteError";
    case BadEntry::Kind::diagonal:
      return "DiagonalError";
    case BadEntry::Kind::not_symmetric:
      return "NotSymmetricError";
  }
  return "MatrixError";
}

inline void translate_error(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const BadEntry& e) {
    raise(class_of(e.kind()), nanobind::make_tuple(e.what(), e.row(), e.column()));
  } catch (const InvalidInput& e) {
    raise("InvalidInputError", e.what());
  } catch (const Unsupported& e) {
    raise("UnsupportedError", e.what());
  } catch (const OutOfMemory& e) {
    raise("OutOfMemoryError", e.what());
  } catch (const EngineError& e) {
    raise("EngineError", e.what());
  } catch (const std::bad_cast&) {
    raise("InvalidInputError", "an option or argument has the wrong type");
  } catch (const std::bad_alloc&) {
    raise("OutOfMemoryError",
          "out of memory; use a smaller problem, or a machine with more memory");
  }
}

}  // namespace cpufree
