// The methods, written once for all baselines: which kernels an iteration launches, and what is
// exchanged and reduced between them. `parity` is that of the iteration: graphs hold an even number
// of them.
#pragma once

#include <memory>

#include "cpufree/baselines/rank_group.hpp"
#include "cpufree/baselines/steps/cg.hpp"
#include "cpufree/baselines/steps/pipecg.hpp"
#include "cpufree/baselines/steps/prcg.hpp"
#include "cpufree/solvers/method.hpp"

namespace cpufree::baselines {

// What ends a solve.
struct Stop {
  double rtol = 1e-5;  // negative: nothing but the number of iterations
  std::uint64_t iterations = 0;
};

template <class T>
class MethodSteps {
 public:
  virtual ~MethodSteps() = default;
  virtual void start(Team<T>& team, const Stop& stop) const = 0;
  virtual void iterate(Team<T>& team, int parity) const = 0;
  // After the last iteration: judges the last residual, and ends what an iteration leaves open.
  virtual void finish(Team<T>& team, int parity) const = 0;
  virtual unsigned sums_in_an_iteration() const = 0;

 protected:
  // Sets the limits, once the total `bb` is there; `sums` reductions lie between that and the
  // judgement of the first residual.
  void set_limits(Team<T>& team, const Stop& stop, const Sums& bb, unsigned sums = 0) const {
    team.single([&](Rank<T>& rank) {
      return SetLimits{team.template totals<1>(rank, bb), stop.rtol, team.comm().epoch(rank),
                       stop.iterations * sums_in_an_iteration() + sums, rank.limits.data()};
    });
  }
};

// Two reductions. Kernels: direction, product (and ghosts), residual.
template <class T>
class CgSteps : public MethodSteps<T> {
 public:
  unsigned sums_in_an_iteration() const override { return 2; }

  void start(Team<T>& team, const Stop& stop) const override {
    team.preset(kCurvature, 0, 1.0);
    team.preset(kResidual[1], 0, 1.0);
    team.preset(kResidual[1], 1, HUGE_VAL);
    team.template step<2>(
        [&](Rank<T>& rank) {
          return CgStart<T>{rank.b.data(),
                            rank.diagonal(),
                            rank.x.data(),
                            rank.r.data(),
                            rank.vector(HaloVector::p),
                            rank.sums.data()};
        },
        kResidual[0]);
    team.sum(kResidual[0]);
    this->set_limits(team, stop, {kResidual[0].first + 1, 1});
  }

  void iterate(Team<T>& team, int parity) const override {
    turn(team, parity);
    team.send(HaloVector::p);
    team.multiply(
        HaloVector::p, &Rank<T>::s,
        [](Rank<T>& rank) { return CurvatureSum<T>{rank.vector(HaloVector::p)}; }, kCurvature);
    team.sum(kCurvature);
    team.template step<2>(
        [&](Rank<T>& rank) {
          return CgResidual<T>{rank.r.data(),
                               rank.s.data(),
                               rank.diagonal(),
                               team.template totals<2>(rank, kResidual[parity]),
                               team.template totals<1>(rank, kCurvature),
                               team.control(rank, 2)};
        },
        kResidual[1 - parity]);
    team.sum(kResidual[1 - parity]);
  }

  void finish(Team<T>& team, int parity) const override { turn(team, parity); }

 private:
  // The numbers before the first ones, which CgStart presets, are the first three slots.
  static constexpr Sums kCurvature{0, 1};
  static constexpr Sums kResidual[2] = {{3, 2}, {1, 2}};

  static void turn(Team<T>& team, int parity) {
    team.template packing_step<0>([&](Rank<T>& rank) {
      return CgDirection<T>{rank.x.data(),
                            rank.r.data(),
                            rank.vector(HaloVector::p),
                            rank.diagonal(),
                            team.outbox(rank),
                            team.template totals<2>(rank, kResidual[parity]),
                            team.template totals<2>(rank, kResidual[1 - parity]),
                            team.template totals<1>(rank, kCurvature),
                            team.control(rank, 2)};
    });
  }
};

// One reduction. Kernels: update, product (and ghosts).
template <class T>
class PrcgSteps : public MethodSteps<T> {
 public:
  unsigned sums_in_an_iteration() const override { return 1; }

  void start(Team<T>& team, const Stop& stop) const override {
    team.template packing_step<0>([&](Rank<T>& rank) {
      return PrcgStart<T>{rank.b.data(),
                          rank.diagonal(),
                          rank.x.data(),
                          rank.r.data(),
                          rank.vector(HaloVector::p),
                          team.outbox(rank)};
    });
    product(team);
    this->set_limits(team, stop, {kAll.first + PrcgSums<T>::kSquare, 1});
  }

  void iterate(Team<T>& team, int) const override {
    update(team);
    product(team);
  }

  void finish(Team<T>& team, int) const override {
    team.single([&](Rank<T>& rank) { return make_update(team, rank); });
  }

 private:
  static constexpr Sums kAll{0, 5};

  static PrcgUpdate<T> make_update(Team<T>& team, Rank<T>& rank) {
    return {rank.x.data(),
            rank.r.data(),
            rank.vector(HaloVector::p),
            rank.s.data(),
            rank.diagonal(),
            team.outbox(rank),
            team.template totals<5>(rank, kAll),
            team.control(rank, 1)};
  }
  static void update(Team<T>& team) {
    team.template packing_step<0>([&](Rank<T>& rank) { return make_update(team, rank); });
  }
  static void product(Team<T>& team) {
    team.send(HaloVector::p);
    team.multiply(
        HaloVector::p, &Rank<T>::s,
        [](Rank<T>& rank) {
          return PrcgSums<T>{rank.vector(HaloVector::p), rank.r.data(), rank.diagonal()};
        },
        kAll);
    team.sum(kAll);
  }
};

// One reduction, under way during the product. Kernels: product (and ghosts), update.
template <class T>
class PipecgSteps : public MethodSteps<T> {
 public:
  unsigned sums_in_an_iteration() const override { return 1; }

  void start(Team<T>& team, const Stop& stop) const override {
    team.preset(kSums[1], kPipeGamma, HUGE_VAL);
    team.template packing_step<1>(
        [&](Rank<T>& rank) {
          return PipeStart<T>{rank.b.data(),     rank.diagonal(),
                              rank.x.data(),     rank.r.data(),
                              rank.z.data(),     rank.s.data(),
                              rank.q.data(),     rank.vector(kM[1]),
                              team.outbox(rank), rank.sums.data() + kSums[1].first};
        },
        kSquare);
    team.send(kM[1]);
    team.begin_sum(kSquare);
    multiply(team, kM[1], &Rank<T>::w);
    team.end_sum(kSquare);
    this->set_limits(team, stop, kSquare, 1);
    update(team, 1, true);
  }

  void iterate(Team<T>& team, int parity) const override {
    team.send(kM[parity]);
    team.begin_sum(kSums[parity]);
    multiply(team, kM[parity], &Rank<T>::n);
    team.end_sum(kSums[parity]);
    update(team, parity, false);
  }

  void finish(Team<T>& team, int parity) const override {
    team.sum(kSums[parity]);
    team.single([&](Rank<T>& rank) { return make_update(team, rank, parity, false); });
  }

 private:
  static constexpr Sums kSums[2] = {{0, 3, true}, {3, 3, true}};
  static constexpr Sums kSquare{6, 1, true};
  static constexpr int kAlpha[2] = {7, 8};  // of the last steps, beside the sums
  static constexpr HaloVector kM[2] = {HaloVector::p, HaloVector::scratch};

  static void multiply(Team<T>& team, HaloVector m, DeviceArray<T> Rank<T>::* to) {
    team.multiply(m, to, [](Rank<T>&) { return NoSums<T>{}; });
  }

  // Of the iteration with that parity: reads its totals, and prepares those of the next one.
  static PipeUpdate<T> make_update(Team<T>& team, Rank<T>& rank, int parity, bool starts) {
    return {rank.x.data(),
            rank.r.data(),
            rank.w.data(),
            rank.z.data(),
            rank.s.data(),
            rank.q.data(),
            rank.vector(kM[1 - parity]),
            rank.n.data(),
            rank.diagonal(),
            team.outbox(rank),
            team.template totals<3>(rank, kSums[parity]),
            team.template totals<3>(rank, kSums[1 - parity]),
            rank.sums.data() + kAlpha[1 - parity],
            rank.sums.data() + kAlpha[parity],
            team.control(rank, 1),
            starts};
  }
  static void update(Team<T>& team, int parity, bool starts) {
    team.template packing_step<3>(
        [&](Rank<T>& rank) { return make_update(team, rank, parity, starts); }, kSums[1 - parity]);
  }
};

template <class T>
std::unique_ptr<MethodSteps<T>> make_steps(Method method) {
  if (method == Method::cg) return std::make_unique<CgSteps<T>>();
  if (method == Method::prcg) return std::make_unique<PrcgSteps<T>>();
  if (method == Method::pipecg) return std::make_unique<PipecgSteps<T>>();
  throw Unsupported("no baseline drives this method");
}

}  // namespace cpufree::baselines
