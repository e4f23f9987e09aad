// Texts of sparse matrices, and the rows of what they hold.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/core/matrix.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/problem/matrix_text.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

template <class T>
using Writable = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<T> target_of(const Writable<T>& array) {
  return {array.data(), array.size()};
}

TextTarget target_in(std::int64_t n_rows, std::int64_t n_columns, const Writable<std::int32_t>& row,
                     const Writable<std::int32_t>& col, const nb::object& values,
                     std::int64_t next) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  require(n_rows <= kMost && n_columns <= kMost, "rows and columns have numbers of 32 bits");
  TextTarget target{n_rows, n_columns, target_of(row), target_of(col), {}, {}, next};
  if (Writable<double> real; nb::try_cast(values, real, false))
    target.real = target_of(real);
  else if (Writable<std::int64_t> whole; nb::try_cast(values, whole, false))
    target.whole = target_of(whole);
  else
    require(values.is_none(), "values must be an array of float64 or int64, or None");
  const std::size_t size = target.row.size();
  require(target.col.size() == size &&
              (values.is_none() || target.real.size() + target.whole.size() == size) && next >= 0,
          "row, col and values must be equally long");
  return target;
}

std::int64_t parse(const Vector<std::uint8_t>& text, std::int64_t n_rows, std::int64_t n_columns,
                   const Writable<std::int32_t>& row, const Writable<std::int32_t>& col,
                   const nb::object& values, std::int64_t next) {
  const TextTarget target = target_in(n_rows, n_columns, row, col, values, next);
  const nb::gil_scoped_release release;
  const auto bytes = span_of(text);
  return parse_entries({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, target);
}

std::int64_t parse_file(int file, std::int64_t begin, std::int64_t end, std::int64_t n_rows,
                        std::int64_t n_columns, const Writable<std::int32_t>& row,
                        const Writable<std::int32_t>& col, const nb::object& values) {
  require(0 <= begin && begin <= end, "begin and end must be places in the file, in order");
  const TextTarget target = target_in(n_rows, n_columns, row, col, values, 0);
  const nb::gil_scoped_release release;
  return parse_entries_of_file(file, begin, end, target);
}

nb::object rows_of(const Rows& row, const Rows& col, const Vector<double>& val, std::int32_t n,
                   bool mirror) {
  require(row.size() == col.size() && row.size() == val.size(),
          "row, col and values must be equally long");
  std::optional<CsrArrays> found;
  {
    const nb::gil_scoped_release release;
    const auto inside = [n](std::int32_t number) { return number >= 0 && number < n; };
    require(std::ranges::all_of(span_of(row), inside) && std::ranges::all_of(span_of(col), inside),
            "numbers of rows and columns must be from 0 to n - 1");
    found = rows_of_entries(span_of(row), span_of(col), span_of(val), n, mirror);
  }
  if (!found) return nb::none();
  return nb::make_tuple(to_numpy(std::move(found->row_ptr)), to_numpy(std::move(found->col)),
                        to_numpy(std::move(found->val)));
}

}  // namespace

void bind_matrix_text(nb::module_& m) {
  m.def("parse_entries", &parse, nb::arg("text"), nb::arg("n_rows"), nb::arg("n_columns"),
        nb::arg("row"), nb::arg("col"), nb::arg("values").none(), nb::arg("next"));
  m.def("parse_entries_of_file", &parse_file, nb::arg("file"), nb::arg("begin"), nb::arg("end"),
        nb::arg("n_rows"), nb::arg("n_columns"), nb::arg("row"), nb::arg("col"),
        nb::arg("values").none());
  m.def("rows_of_entries", &rows_of, nb::arg("row"), nb::arg("col"), nb::arg("values"),
        nb::arg("n"), nb::arg("mirror"));
}

}  // namespace cpufree
