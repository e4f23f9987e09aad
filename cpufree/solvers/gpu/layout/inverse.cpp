#include "cpufree/solvers/gpu/layout/inverse.hpp"

#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/formats/layout/inverse.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/staging.hpp"

namespace cpufree {

namespace {

static_assert(kFarInverse == layout::kMostInverse * (layout::kMostInverse + 1) / 2);

using gpu::DeviceArray;
using Int32s = DeviceArray<std::int32_t>;
using Int64s = DeviceArray<std::int64_t>;
using Words = DeviceArray<std::uint32_t>;
using Singles = DeviceArray<float>;

struct FactorThere {
  Int64s ptr;
  Int32s col;
  Singles val;

  std::int64_t rows() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
};

// Room on the host for a factor, and the copies that bring it.
SparseFactor coming(int device, const FactorThere& there, std::vector<StagedCopy>& copies) {
  SparseFactor factor;
  const auto bring = [&](auto& to, const auto& from) {
    to.resize(from.size());
    copies.push_back({device, to.data(), from.data(), to.size() * sizeof(to[0])});
  };
  bring(factor.row_ptr, there.ptr);
  bring(factor.col, there.col);
  bring(factor.val, there.val);
  return factor;
}

template <class T>
class InverseMaker {
 public:
  InverseMaker(const GpuRows<T>& rows, const FsaiOptions& options)
      : rows_(rows), options_(options), scale_(array<double>(rows.rows)) {}

  Factors make() {
    const gpu::OnDevice here(rows_.device());
    launch(layout::ScaleInverse<T>{rows_.part(), scale_.data()}, rows_.rows);
    const Words replaced{rows_.stream, std::size_t{1}}, of_column{rows_.stream, at(rows_.rows)};
    const FactorThere g = invert(replaced, of_column);
    const FactorThere t = transpose(g, of_column);
    Factors made;
    std::vector<StagedCopy> copies;
    made.factors.push_back(coming(rows_.device(), g, copies));
    made.factors.push_back(coming(rows_.device(), t, copies));
    made.scale.resize(at(rows_.rows));
    copies.push_back({rows_.device(), made.scale.data(), scale_.data(), made.scale.size() * 8});
    made.replaced = fetch(rows_.stream, replaced.data(), 1)[0];  // waits for all of it
    fetch_staged(copies);
    return made;
  }

 private:
  template <class U>
  DeviceArray<U> array(std::int64_t count) const {
    return DeviceArray<U>::uninitialised(rows_.device(), at(count));
  }
  template <class K>
  void launch(const K& kernel, std::int64_t items) const {
    launch_layout(kernel, items, rows_.stream);
  }

  FactorThere invert(const Words& replaced, const Words& of_column) const {
    const std::int64_t teams = inverse_teams(rows_.rows);
    const auto far = array<double>(teams * kFarInverse);
    const Int32s count = array<std::int32_t>(rows_.rows);
    const std::int64_t room = rows_.nnz + rows_.rows;
    const Int32s col = array<std::int32_t>(room);
    const Singles val = array<float>(room);
    layout::InvertRows<T> kernel;
    kernel.a = rows_.part();
    kernel.scale = scale_.data();
    kernel.least_pivot = kLeastPivot;
    kernel.least_kept = options_.least_kept;
    kernel.teams = teams;
    kernel.far = far.data();
    kernel.count = count.data();
    kernel.col = col.data();
    kernel.val = val.data();
    kernel.replaced = replaced.data();
    launch(kernel, teams * gpu_p2p::kWarp);
    FactorThere g;
    g.ptr = scan_numbers<T>(rows_.stream, count.data(), rows_.rows);
    const std::int64_t entries = fetch(rows_.stream, g.ptr.data() + rows_.rows, 1)[0];
    g.col = array<std::int32_t>(entries);
    g.val = array<float>(entries);
    launch(layout::PackInverse<T>{rows_.rows, rows_.ptr.data(), col.data(), val.data(),
                                  g.ptr.data(), g.col.data(), g.val.data(), of_column.data()},
           rows_.rows);
    rows_.stream.wait("the rows of an approximate inverse");
    return g;
  }

  FactorThere transpose(const FactorThere& g, const Words& of_column) const {
    FactorThere t;
    t.ptr = scan_numbers<T>(rows_.stream, reinterpret_cast<const std::int32_t*>(of_column.data()),
                            g.rows());
    t.col = array<std::int32_t>(static_cast<std::int64_t>(g.col.size()));
    t.val = array<float>(static_cast<std::int64_t>(g.val.size()));
    of_column.clear(rows_.stream);
    launch(layout::SpreadInverse<T>{g.rows(), g.ptr.data(), g.col.data(), g.val.data(),
                                    t.ptr.data(), of_column.data(), t.col.data(), t.val.data()},
           g.rows());
    launch(layout::SortInverse<T>{t.rows(), t.ptr.data(), t.col.data(), t.val.data()}, t.rows());
    return t;
  }

  const GpuRows<T>& rows_;
  const FsaiOptions& options_;
  DeviceArray<double> scale_;
};

}  // namespace

template <class T>
Factors inverse_by_gpu(const GpuRows<T>& rows, const FsaiOptions& options) {
  require(options.level == 1 && options.least == 0.0 && options.most == layout::kMostInverse,
          "GPUs make approximate inverses of level 1");
  require(rows.names() == nullptr, "rows of an approximate inverse are in their first sequence");
  return InverseMaker<T>(rows, options).make();
}

template Factors inverse_by_gpu(const GpuRows<float>&, const FsaiOptions&);
template Factors inverse_by_gpu(const GpuRows<double>&, const FsaiOptions&);

}  // namespace cpufree
