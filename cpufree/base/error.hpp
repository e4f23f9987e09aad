// The one tree of errors of the C++ core. The bindings turn each kind into the Python class of the
// same meaning (python/cpufree/errors.py).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace cpufree {

// Root of all errors thrown by the C++ core. The message says what is wrong, where, and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller's data or options are wrong.
class InvalidInput : public Error {
 public:
  using Error::Error;
};

// An entry of a matrix that cannot be used. Rows and columns count from 0.
class BadEntry : public InvalidInput {
 public:
  enum class Kind { not_finite, diagonal, not_symmetric };
  BadEntry(Kind what, std::int64_t i, std::int64_t j, const std::string& message)
      : InvalidInput(message), kind_(what), row_(i), column_(j) {}
  Kind kind() const { return kind_; }
  std::int64_t row() const { return row_; }
  std::int64_t column() const { return column_; }

 private:
  Kind kind_;
  std::int64_t row_;
  std::int64_t column_;
};

// A feature or engine that this build or this machine does not have.
class Unsupported : public Error {
 public:
  using Error::Error;
};

// An engine failed: threads, devices, drivers.
class EngineError : public Error {
 public:
  using Error::Error;
};

// Not enough memory, of the host or of a device.
class OutOfMemory : public EngineError {
 public:
  using EngineError::EngineError;
};

// Throws `InvalidInput` with `message` unless `holds`.
inline void require(bool holds, const std::string& message) {
  if (!holds) throw InvalidInput(message);
}

}  // namespace cpufree
