// The verbs of a level of multigrid, beside those of the solvers: a product whose results are
// exchanged at once.
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/solvers/context.hpp"

namespace cpufree {

// The operand of a level's product. A warp loads columns and values of a chunk, then what the
// columns lead to, and then multiplies: left to itself, the compiler for GPUs puts the first of the
// multiplications before the last of these loads, and a chunk waits for memory four times, not two.
template <Port P>
struct LevelOperand {
  static constexpr bool in_pieces = false;
  P& port;
  const float* values;

  CPUFREE_KERNEL_FN float operator()(std::int32_t column) const { return values[column]; }
  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], float (&out)[N]) const {
    if constexpr (WarpPort<P>) port.warp_sync();
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) out[k] = values[columns[k]];
    if constexpr (WarpPort<P>) port.warp_sync();
  }
};

// M: the level's matrices.
template <Port P, class M>
class LevelContext : public Context<P, M, LevelSlices> {
  using Base = Context<P, M, LevelSlices>;
  using typename Base::Part;

 public:
  using Base::Base;
  using typename Base::T, typename Base::Vector;

  // After an exchange of v, one of the two scratch vectors: f(row, read(row), (A v)(row)) for all
  // my rows; what f returns is exchanged by the other one, if `sends`. These are steps 5 and 6 of
  // one exchange, and 1 to 4 of the next. What read(row) loads is on its way while the product is
  // computed. Halos are stores; boundary rows come last, and travel while the next product has
  // interior rows.
  //
  // Reuse. My rows of the other vector were last read in the exchange before that of v, by blocks
  // of my PE that have arrived in v's after that; I write them after wait_local, that is, after
  // these. Ghosts of other PEs I write after wait_halo, which says so of their blocks. This is
  // proof (ii).
  template <class G, class F>
  CPUFREE_KERNEL_FN bool multiply_and_exchange_scratch(const Vector& v, G&& read, F&& f,
                                                       bool sends) {
    const Vector to = this->next_scratch();
    const bool here = products(v, read, [&, to](const Part& part, auto boundary) {
      return
          [&, to, boundary, f, shift = part.shift](std::int32_t i, const auto& given, T product) {
            const Row row{i, i - shift};
            const T value = f(row, given, product);
            to.set(row, value);
            if (boundary && sends) this->send(to, row, value);
          };
    });
    if (!here || !sends) return here;
    this->arrivals_.begin();
    this->arrive(to);
    this->arrivals_.arrive_local();
    return true;
  }
  // `exchange_scratch` of a vector whose rows are written already. That may begin once the exchange
  // before has been waited for. Halos are stores.
  CPUFREE_KERNEL_FN void exchange_written_scratch() {
    const Vector v = this->next_scratch();
    this->port_.sync_block();  // who sends a row need not have written it
    this->arrivals_.begin();
    this->each(this->boundary(), [&](std::int32_t i, int) {
      const Row row{i, i - this->share_.boundary_shift};
      this->send(v, row, v[row]);
    });
    this->arrive(v);
    this->arrivals_.arrive_local();
  }

 private:
  // For all my rows i, once what they read has come: f(part, boundary)(i, read(row), (A v)(row)).
  template <class G, class F>
  CPUFREE_KERNEL_FN bool products(const Vector& v, G&& read, F&& f) {
    const LevelOperand<P> x{this->port_, v.data};
    const auto of_part = [&](const Part& part, auto boundary) {
      const auto use = f(part, boundary);
      const auto at = [read, shift = part.shift](std::int32_t i) {
        return read(Row{i, i - shift});
      };
      if constexpr (Base::one_copy)
        this->share_.matrix.template multiply_reading<LevelSlices>(this->port_, part.rows, x, at,
                                                                   use);
      else  // hardware fetches ahead
        this->share_.matrix.template multiply<LevelSlices>(
            this->port_, part.rows, x,
            [use, at](std::int32_t i, int, T value) { use(i, at(i), value); });
    };
    if (!this->arrivals_.wait_local()) return false;
    bool here = true;
    this->parts_backwards([&](const Part& part, auto boundary) {
      if (boundary) here = this->arrivals_.wait_halo();
      if (here) of_part(part, boundary);
    });
    return here;
  }
};

}  // namespace cpufree
