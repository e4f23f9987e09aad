// What there is to see in the arrays of a matrix.
#include "cpufree/bindings/core/matrix.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "cpufree/base/digest.hpp"
#include "cpufree/base/error.hpp"
#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/multigrid/near_null_space.hpp"
#include "cpufree/problem/entries.hpp"
#include "cpufree/problem/partition/compressed_graph.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/problem/partition/partition_cost.hpp"
#include "cpufree/problem/row_part.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

bool are_rows_in(const Vector<std::int64_t>& indptr, const nb::object& indices) {
  if (Vector<std::int32_t> columns; nb::try_cast(indices, columns, false)) {
    const nb::gil_scoped_release release;
    return are_rows<std::int32_t>(span_of(indptr), span_of(columns));
  }
  if (Vector<std::int64_t> columns; nb::try_cast(indices, columns, false)) {
    const nb::gil_scoped_release release;
    return are_rows<std::int64_t>(span_of(indptr), span_of(columns));
  }
  throw InvalidInput("indices must be a contiguous array of int32 or int64");
}

nb::object widened_array(const Rows& numbers) {
  PageVector<std::int64_t> wide;
  {
    const nb::gil_scoped_release release;
    wide = widened(span_of(numbers));
  }
  return to_numpy(std::move(wide));
}

template <class T>
EntryReport report_on(const Vector<std::int64_t>& indptr, const Rows& indices,
                      const Vector<T>& data) {
  const CsrView<T> matrix = matrix_of(indptr, indices, data);
  const nb::gil_scoped_release release;
  return inspect(matrix);
}

nb::dict inspect_arrays(const Vector<std::int64_t>& indptr, const Rows& indices,
                        const nb::object& data) {
  require(indptr.size() >= 1, "indptr must not be empty");
  EntryReport seen;
  if (Vector<double> values; nb::try_cast(data, values, false))
    seen = report_on(indptr, indices, values);
  else if (Vector<float> singles; nb::try_cast(data, singles, false))
    seen = report_on(indptr, indices, singles);
  else
    throw InvalidInput("data must be a contiguous array of float64 or float32");
  return dict_of(seen);
}

int range_exponent_of(const nb::object& data) {
  if (Vector<double> values; nb::try_cast(data, values, false)) {
    const nb::gil_scoped_release release;
    return range_exponent(span_of(values));
  }
  if (Vector<float> singles; nb::try_cast(data, singles, false)) {
    const nb::gil_scoped_release release;
    return range_exponent(span_of(singles));
  }
  throw InvalidInput("data must be a contiguous array of float64 or float32");
}

nb::object contiguous_partition_of(const Vector<std::int64_t>& indptr, int pes) {
  require(indptr.size() >= 2 && pes >= 1, "a partition has a row, and a PE, at least");
  return to_numpy(contiguous_partition(span_of(indptr), pes));
}

nb::object whole_nodes_of(const Rows& part, const Rows& node) {
  return to_numpy(multigrid::with_whole_nodes(span_of(part), span_of(node)));
}

template <class T>
bool maps_to_zero_in(const Vector<std::int64_t>& indptr, const Rows& indices, const Vector<T>& data,
                     int unknowns, double tolerance) {
  const CsrView<T> matrix = matrix_of(indptr, indices, data);
  const nb::gil_scoped_release release;
  return maps_to_zero(matrix, unknowns, tolerance);
}

template <class T>
double norm_of_residual(const Vector<std::int64_t>& indptr, const Rows& indices,
                        const Vector<T>& data, const Vector<double>& b, const Vector<double>& x) {
  const CsrView<T> matrix = matrix_of(indptr, indices, data);
  const nb::gil_scoped_release release;
  require(are_rows<std::int32_t>(matrix.row_ptr, matrix.col),
          "indptr and indices must be rows with ascending columns");
  return residual_norm(matrix, span_of(b), span_of(x));
}

double residual_norm_in(const Vector<std::int64_t>& indptr, const Rows& indices,
                        const nb::object& data, const Vector<double>& b, const Vector<double>& x) {
  require(indptr.size() >= 1 && b.size() + 1 == indptr.size() && x.size() + 1 == indptr.size(),
          "b and x must have a number for each row");
  if (Vector<double> values; nb::try_cast(data, values, false))
    return norm_of_residual(indptr, indices, values, b, x);
  if (Vector<float> singles; nb::try_cast(data, singles, false))
    return norm_of_residual(indptr, indices, singles, b, x);
  throw InvalidInput("data must be a contiguous array of float64 or float32");
}

double mean_distance_in(const Vector<std::int64_t>& indptr, const Rows& indices,
                        const std::optional<Rows>& place, const std::optional<Rows>& part) {
  const std::size_t rows = indptr.size() - 1;
  require((!place || place->size() == rows) && (!part || part->size() == rows),
          "place and part must have an entry for each row");
  const nb::gil_scoped_release release;
  return mean_distance(span_of(indptr), span_of(indices), span_of(place), span_of(part));
}

// Part numbers are checked: they are places in tables.
nb::dict partition_cost(const Vector<std::int64_t>& indptr, const Rows& indices, const Rows& part,
                        int pes) {
  require(indptr.size() == part.size() + 1, "part must have an entry for each row");
  PartitionCost cost;
  {
    const nb::gil_scoped_release release;
    const auto owners = span_of(part);
    require(std::ranges::all_of(owners, [&](std::int32_t pe) { return pe >= 0 && pe < pes; }),
            "part numbers must be from 0 to the number of PEs less 1");
    require(span_of(indptr).back() == static_cast<std::int64_t>(indices.size()),
            "indptr must end with the number of entries");
    cost = cost_of(span_of(indptr), span_of(indices), owners, pes);
  }
  nb::dict d;
  d["rows"] = cost.rows;
  d["nnz"] = cost.nnz;
  d["boundary_rows"] = cost.boundary_rows;
  d["traffic"] = cost.traffic;
  d["cut"] = cost.cut;
  return d;
}

// Columns are checked: they are places in tables.
nb::dict compressed(const Vector<std::int64_t>& indptr, const Rows& indices, bool merge) {
  CompressedGraph graph;
  {
    const nb::gil_scoped_release release;
    require(are_rows<std::int32_t>(span_of(indptr), span_of(indices)),
            "indptr and indices must be rows with ascending columns");
    graph = compressed_graph(span_of(indptr), span_of(indices), merge);
  }
  nb::dict d;
  d["vertex"] = to_numpy(std::move(graph.vertex));
  d["starts"] = to_numpy(std::move(graph.starts));
  d["neighbours"] = to_numpy(std::move(graph.neighbours));
  d["weights"] = to_numpy(std::move(graph.weights));
  return d;
}

template <class T>
nb::tuple part_of(const Vector<std::int64_t>& indptr, const Rows& indices, const Vector<T>& data,
                  std::int32_t start, std::int32_t size) {
  const CsrView<T> matrix = matrix_of(indptr, indices, data);
  require(size >= 1 && start >= 0 && start < matrix.n, "a part has a row of the matrix at least");
  RowPart<T> part;
  {
    const nb::gil_scoped_release release;
    part = part_around(matrix, start, size);
  }
  return nb::make_tuple(to_numpy(std::move(part.row_ptr)), to_numpy(std::move(part.col)),
                        to_numpy(std::move(part.val)));
}

nb::tuple row_part(const Vector<std::int64_t>& indptr, const Rows& indices, const nb::object& data,
                   std::int32_t start, std::int32_t size) {
  if (Vector<double> values; nb::try_cast(data, values, false))
    return part_of(indptr, indices, values, start, size);
  if (Vector<float> singles; nb::try_cast(data, singles, false))
    return part_of(indptr, indices, singles, start, size);
  throw InvalidInput("data must be a contiguous array of float64 or float32");
}

double padding(const Vector<std::int64_t>& indptr, std::int64_t slice, std::int64_t most) {
  require(slice >= 1, "a slice has a row at least");
  require(indptr.size() >= 1, "indptr must not be empty");
  const nb::gil_scoped_release release;
  return slice_padding(span_of(indptr), slice, most);
}

nb::tuple digest(const Vector<std::uint8_t>& bytes) {
  Digest found{};
  {
    const nb::gil_scoped_release release;
    found = digest_of(std::as_bytes(span_of(bytes)));
  }
  return nb::make_tuple(found[0], found[1]);
}

}  // namespace

nb::dict dict_of(const EntryReport& seen) {
  nb::dict d;
  d["mirrored"] = seen.mirrored;
  d["symmetric"] = seen.symmetric;
  d["asymmetry"] = seen.asymmetry;
  d["finite"] = seen.finite;
  d["positive_diagonal"] = seen.positive_diagonal;
  return d;
}

void bind_matrix(nb::module_& m) {
  m.def("are_rows", &are_rows_in, nb::arg("indptr"), nb::arg("indices"));
  m.def("widened", &widened_array, nb::arg("numbers"));
  m.def("inspect", &inspect_arrays, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"));
  m.def("range_exponent", &range_exponent_of, nb::arg("data"));
  m.def("contiguous_partition", &contiguous_partition_of, nb::arg("indptr"), nb::arg("pes"));
  m.def("with_whole_nodes", &whole_nodes_of, nb::arg("part"), nb::arg("node"));
  m.def(
      "symmetry_tolerance",
      [](bool singles) { return singles ? kSymmetryTolerance<float> : kSymmetryTolerance<double>; },
      nb::arg("singles"));
  m.def("maps_to_zero", &maps_to_zero_in<double>, nb::arg("indptr"), nb::arg("indices"),
        nb::arg("data").noconvert(), nb::arg("unknowns"), nb::arg("tolerance"));
  m.def("maps_to_zero", &maps_to_zero_in<float>, nb::arg("indptr"), nb::arg("indices"),
        nb::arg("data").noconvert(), nb::arg("unknowns"), nb::arg("tolerance"));
  m.def("residual_norm", &residual_norm_in, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
        nb::arg("b"), nb::arg("x"));
  m.def("mean_distance", &mean_distance_in, nb::arg("indptr"), nb::arg("indices"),
        nb::arg("place").none(), nb::arg("part").none());
  m.def("partition_cost", &partition_cost, nb::arg("indptr"), nb::arg("indices"), nb::arg("part"),
        nb::arg("pes"));
  m.def("compressed_graph", &compressed, nb::arg("indptr"), nb::arg("indices"), nb::arg("merge"));
  m.def("row_part", &row_part, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
        nb::arg("start"), nb::arg("size"));
  m.def("slice_padding", &padding, nb::arg("indptr"), nb::arg("slice"), nb::arg("most"));
  m.def("digest", &digest, nb::arg("bytes"));
}

}  // namespace cpufree
