#include "cpufree/solvers/host/many.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/bindings/arrays.hpp"
#include "cpufree/bindings/core/system.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace nb = nanobind;

namespace cpufree {
namespace {

// The arrays of all systems, each a list with one for each system; they hold what views show.
template <class T>
struct ManyArrays {
  using Written = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  std::vector<Vector<std::int64_t>> indptr;
  std::vector<Rows> indices;
  std::vector<Vector<T>> data, b, x0;
  std::vector<Written> out;

  ManyArrays(const nb::list& lists) {
    indptr = nb::cast<decltype(indptr)>(lists[0]);
    indices = nb::cast<decltype(indices)>(lists[1]);
    data = nb::cast<decltype(data)>(lists[2]);
    b = nb::cast<decltype(b)>(lists[3]);
    x0 = nb::cast<decltype(x0)>(lists[4]);
    out = nb::cast<decltype(out)>(lists[5]);
    for (const std::size_t size : {indices.size(), data.size(), b.size(), out.size()})
      require(size == indptr.size(), "there must be as many arrays of each kind as systems");
    require(x0.empty() || x0.size() == b.size(), "x0 has one guess for each system, or none");
  }
  std::vector<OneOfMany<T>> systems() const {
    std::vector<OneOfMany<T>> all(b.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      require(indptr[k].size() >= 1, "indptr must not be empty");
      all[k] = {matrix_of(indptr[k], indices[k], data[k]),
                span_of(b[k]),
                x0.empty() ? std::span<const T>() : span_of(x0[k]),
                {out[k].data(), out[k].size()}};
    }
    return all;
  }
};

nb::dict dict_of(const std::vector<SolvedOne>& solved) {
  const auto numbers = [&](auto value) {
    std::vector<double> all;
    for (const SolvedOne& one : solved) all.push_back(static_cast<double>(value(one)));
    return to_numpy(std::move(all));
  };
  nb::dict d, errors;
  nb::list reasons;
  for (std::size_t k = 0; k < solved.size(); ++k) {
    reasons.append(solved[k].refused ? nb::none()
                                     : nb::cast(reason_name(solved[k].outcome.reason)));
    if (solved[k].refused) errors[nb::int_(k)] = solved[k].error;
  }
  d["reasons"] = reasons;
  d["errors"] = errors;
  d["iterations"] = numbers([](const SolvedOne& one) { return one.outcome.iterations; });
  d["residual"] = numbers([](const SolvedOne& one) { return one.outcome.residual; });
  d["true_residual"] = numbers([](const SolvedOne& one) { return one.outcome.true_residual; });
  d["bnorm"] = numbers([](const SolvedOne& one) { return one.outcome.bnorm; });
  d["asymmetry"] = numbers([](const SolvedOne& one) { return one.asymmetry; });
  return d;
}

// The arrays of systems of one pattern: values (k, nnz), vectors (k, n).
template <class T>
std::vector<OneOfMany<T>> stacked(const nb::list& arrays) {
  using Given = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Written = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  const auto indptr = nb::cast<Vector<std::int64_t>>(arrays[0]);
  const auto indices = nb::cast<Rows>(arrays[1]);
  const auto data = nb::cast<Given>(arrays[2]), b = nb::cast<Given>(arrays[3]);
  const auto x0 = nb::cast<std::optional<Given>>(arrays[4]);
  const auto out = nb::cast<Written>(arrays[5]);
  require(indptr.size() >= 1, "indptr must not be empty");
  const std::size_t n = indptr.size() - 1, count = data.shape(0);
  for (const auto* shape : {b.shape_ptr(), out.shape_ptr(), x0 ? x0->shape_ptr() : b.shape_ptr()})
    require(at(shape[0]) == count && at(shape[1]) == n, "vectors must have shape (k, n)");
  require(data.shape(1) == indices.size() && span_of(indptr).back() == std::ssize(span_of(indices)),
          "indptr, indices and data do not belong together");
  std::vector<OneOfMany<T>> all(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto row = [&](const Given& given) {
      return std::span(given.data() + k * given.shape(1), given.shape(1));
    };
    all[k] = {{static_cast<std::int32_t>(n), span_of(indptr), span_of(indices), row(data)},
              row(b),
              x0 ? row(*x0) : std::span<const T>(),
              {out.data() + k * n, n}};
  }
  return all;
}

template <class T>
nb::dict solve_all(const nb::list& arrays, bool stack, const SolveSpec& spec, int gpu, bool check,
                   double tolerance, const Progress& progress) {
  std::optional<ManyArrays<T>> lists;
  if (!stack) lists.emplace(arrays);
  const auto systems = stack ? stacked<T>(arrays) : lists->systems();
  std::vector<SolvedOne> solved(systems.size());
  {
    const nb::gil_scoped_release release;
    if (check) check_many(systems, tolerance, solved);
    if (gpu >= 0)
      gpu_engine().of<T>().many(systems, spec, gpu, progress, solved);
    else
      solve_many(systems, spec, progress, solved);
  }
  return dict_of(solved);
}

}  // namespace

// `arrays`: indptr, indices, data, b, x0 and out of all systems: of one pattern (`stack`), or lists
// of those of each.
void bind_many(nb::module_& m) {
  m.def(
      "solve_many",
      [](const nb::list& arrays, bool stack, bool singles, const nb::dict& options, int gpu,
         bool check, double tolerance, const nb::object& progress) {
        const SolveSpec spec = spec_of_solve(options);
        const Progress tell = progress_of(progress);
        const auto solve = singles ? solve_all<float> : solve_all<double>;
        return solve(arrays, stack, spec, gpu, check, tolerance, tell);
      },
      nb::arg("arrays"), nb::arg("stack"), nb::arg("singles"), nb::arg("options"), nb::arg("gpu"),
      nb::arg("check"), nb::arg("tolerance"), nb::arg("progress").none());
}

}  // namespace cpufree
