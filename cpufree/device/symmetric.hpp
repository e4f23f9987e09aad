// Symmetric memory: one heap per PE, the same layout in all of them. An object is known by its
// offset; `Symmetric<T>` remembers it. The engine allocates heaps of `SymmetricLayout::bytes()`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree {

template <class T>
struct Symmetric {
  std::size_t offset = 0;
  T* at(std::byte* heap) const { return reinterpret_cast<T*>(heap + offset); }
};

// Reserves objects one behind the other, at offsets that are multiples of 256 bytes.
class SymmetricLayout {
 public:
  template <class T>
  Symmetric<T> reserve(std::size_t count) {
    const Symmetric<T> object{bytes_};
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return object;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;
  std::size_t bytes_ = 0;
};

}  // namespace cpufree
