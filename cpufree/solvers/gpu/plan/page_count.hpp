// What arrays on a GPU take besides their bytes. Drivers give memory in pages: an array of half a
// page or more has pages of its own, and smaller ones share some. Arithmetic alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace cpufree {

class PageCount {
 public:
  // `page`: bytes of one.
  explicit PageCount(double page) : page_(page) {}

  // Counts an array; returns its bytes.
  double array(double bytes) {
    if (2.0 * bytes >= page_)
      unused_ += rounded(bytes, page_) - bytes;
    else
      small_ += std::max(rounded(bytes, kPiece), kPiece);
    return bytes;
  }
  template <class U>
  double array(const std::vector<U>& values) {
    return array(static_cast<double>(values.size() * sizeof(U)));
  }
  // Bytes of pages that no array has, or not yet.
  double unused() const { return unused_ + rounded(small_, page_) - small_; }

 private:
  static constexpr double kPiece = 512.0;  // of a page that is shared
  static double rounded(double bytes, double to) { return std::ceil(bytes / to) * to; }
  double page_;
  double unused_ = 0.0;
  double small_ = 0.0;  // bytes of all small arrays
};

}  // namespace cpufree
