#include "cpufree/solvers/gpu/many.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>

#include "cpufree/base/index.hpp"
#include "cpufree/base/pages.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/problem/row_size.hpp"
#include "cpufree/solvers/gpu/kernels/many_kernel.hpp"
#include "cpufree/solvers/host/scaling.hpp"
#include "cpufree/solvers/many.hpp"

namespace cpufree {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 31;  // of one turn
constexpr std::size_t kAlign = 16;
constexpr std::size_t kFastBytes = 96 << 10;  // on chip, so that two blocks share a multiprocessor
constexpr std::int64_t kHistory = 2;          // entries, which are not returned

// A part of the memory of a turn: what is reserved, then told where it lies on the GPU. Pieces
// that go there or come from there are on the host, too, in the same places.
class Section {
 public:
  template <class V>
  std::size_t reserve(std::size_t count) {
    const std::size_t begin = bytes_;
    bytes_ += (count * sizeof(V) + kAlign - 1) / kAlign * kAlign;
    return begin;
  }
  std::size_t bytes() const { return bytes_; }
  void lies_at(std::byte* device) { device_ = device; }
  template <class V>
  V* there(std::size_t begin) const {
    return reinterpret_cast<V*>(device_ + begin);
  }

  // Memory on the host for all that has been reserved, zeroed where it is first used.
  void make() { host_.resize(bytes_); }
  template <class V>
  V* host(std::size_t begin) {
    return reinterpret_cast<V*>(host_.data() + begin);
  }
  void send(const gpu::Stream& stream) const { gpu::copy(device_, host_.data(), bytes_, stream); }
  void fetch(const gpu::Stream& stream) {
    gpu::copy(host_.data(), device_, bytes_, stream);
    stream.drain(gpu::Deadline(gpu::kCopyLimit), "a copy from the GPU");
  }

 private:
  std::size_t bytes_ = 0;
  std::byte* device_ = nullptr;
  PageVector<std::byte> host_;
};

// Where the arrays of a system begin: what is given, what comes back, and what is the GPU's alone.
struct Place {
  std::size_t number = 0;    // of the system
  bool own_pattern = false;  // that of the system before it otherwise
  std::size_t row_ptr = 0, col = 0, val = 0, b = 0, diagonal = 0, share = 0;
  std::size_t x = 0, outcome = 0;
  std::size_t flags = 0, slots = 0, history = 0;
  double scale = 1.0;
  SolveParams params;
};

template <class T>
class Turn {
 public:
  using Matrix = CsrRows<T>;

  Turn(const std::vector<OneOfMany<T>>& systems, const SolveSpec& spec, int device)
      : systems_(systems), spec_(spec), device_(device) {
    leave_ = cleared_.reserve<Flag>(1);
  }

  bool full() const { return given_.bytes() + answers_.bytes() + cleared_.bytes() > kMostBytes; }
  bool empty() const { return places_.empty(); }

  void add(std::size_t number) {
    const OneOfMany<T>& one = systems_[number];
    const auto n = at(one.matrix.n);
    Place place;
    place.own_pattern =
        places_.empty() || !same_pattern(systems_[places_.back().number].matrix, one.matrix);
    if (place.own_pattern) {
      place.row_ptr = given_.template reserve<std::uint32_t>(n + 1);
      place.col = given_.template reserve<std::int32_t>(one.matrix.col.size());
    } else {
      place.row_ptr = places_.back().row_ptr, place.col = places_.back().col;
    }
    place.number = number;
    place.val = given_.template reserve<T>(one.matrix.val.size());
    place.b = given_.template reserve<T>(n);
    place.x = answers_.template reserve<T>(n);
    place.diagonal = given_.template reserve<T>(n);
    place.share = given_.template reserve<BlockShare<Matrix>>(1);
    place.flags = cleared_.template reserve<Flag>(at(arrival_flag_count(1, 1, 1)));
    place.slots = cleared_.template reserve<Packet>(at(reduce_slot_count(1, 1)));
    place.outcome = answers_.template reserve<Outcome>(1);
    place.history = cleared_.template reserve<double>(at(kHistory));
    most_rows_ = std::max(most_rows_, one.matrix.n);
    places_.push_back(place);
  }

  void run(const Progress& progress, std::vector<SolvedOne>& solved) {
    const gpu_p2p::DeviceLocks locks({device_});
    const gpu::OnDevice here(device_);
    GpuKernel kernel{many_kernel<T>(spec_, device_)};
    kernel.threads = std::clamp((most_rows_ + 31) / 32 * 32, 64, kManyThreads);
    const Residency kept = residency();
    kernel.dynamic_bytes = resident_vector_bytes(kept, sizeof(T));
    gpu::load(kernel.function, kernel.dynamic_bytes);
    kernel.blocks = std::min(
        static_cast<int>(places_.size()),
        gpu::resident_blocks(kernel.function, kernel.threads, device_, kernel.dynamic_bytes));
    require(kernel.blocks > 0, "a block of these small systems has no room on this GPU");
    const std::size_t args = given_.template reserve<SolveArgs<Matrix>>(places_.size());
    const auto bytes = given_.bytes() + answers_.bytes();
    const auto memory = gpu::DeviceArray<std::byte>::uninitialised(
        device_, bytes + at(kernel.blocks) * work_of_block() * sizeof(T));
    GpuRunner runner({device_}, kernel.blocks);
    const gpu::DeviceArray<std::byte> cleared(runner.stream(0), cleared_.bytes());
    given_.lies_at(memory.data());
    answers_.lies_at(memory.data() + given_.bytes());
    cleared_.lies_at(cleared.data());
    given_.make();
    answers_.make();
    T* const work = reinterpret_cast<T*>(memory.data() + bytes);
    for_all([&](std::size_t k) {
      fill(places_[k]);
      *given_.template host<SolveArgs<Matrix>>(args + k * sizeof(SolveArgs<Matrix>)) =
          arguments_of(places_[k], work + (k % at(kernel.blocks)) * work_of_block(), kept);
    });
    given_.send(runner.stream(0));
    answers_.send(runner.stream(0));
    runner.synchronize();
    gpu_p2p::Shared shared;
    shared.heaps[0] = memory.data();
    shared.leave = cleared_.there<Flag>(leave_);
    const ManyArgs<Matrix> all{given_.there<SolveArgs<Matrix>>(args),
                               static_cast<std::int32_t>(places_.size())};
    runner.run(kernel, {shared}, {&all}, spec_.limits(), progress);
    answers_.fetch(runner.stream(0));
    for_all([&](std::size_t k) { take_answer(places_[k], solved[places_[k].number]); });
  }

 private:
  // f(k) for all systems, by all cores.
  template <class F>
  void for_all(F&& f) {
    constexpr std::size_t kTogether = 64;
    in_parallel(static_cast<int>((places_.size() + kTogether - 1) / kTogether), [&](int chunk) {
      const std::size_t begin = at(chunk) * kTogether;
      for (std::size_t k = begin; k < std::min(begin + kTogether, places_.size()); ++k) f(k);
    });
  }

  // What a solve is given.
  void fill(Place& place) {
    const OneOfMany<T>& one = systems_[place.number];
    const auto n = at(one.matrix.n);
    if (place.own_pattern) {
      std::ranges::copy(one.matrix.row_ptr, given_.template host<std::uint32_t>(place.row_ptr));
      std::ranges::copy(one.matrix.col, given_.template host<std::int32_t>(place.col));
    }
    std::ranges::copy(one.matrix.val, given_.template host<T>(place.val));
    std::ranges::copy(one.b, given_.template host<T>(place.b));
    T* const b = given_.template host<T>(place.b);
    T* const x = answers_.template host<T>(place.x);
    double largest = 0.0, bound = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    place.scale = scale_from(largest);
    for (std::size_t i = 0; i < n; ++i) {
      b[i] = static_cast<T>(place.scale * static_cast<double>(b[i]));
      x[i] = one.x0.empty() ? T{0} : static_cast<T>(place.scale * static_cast<double>(one.x0[i]));
      RowSize size;
      for (auto e = at(one.matrix.row_ptr[i]); e < at(one.matrix.row_ptr[i + 1]); ++e)
        size.add(static_cast<double>(one.matrix.val[e]), at(one.matrix.col[e]) == i);
      given_.template host<T>(place.diagonal)[i] = static_cast<T>(size.inverse());
      bound = std::max(bound, size.bound());
    }
    SolveSpec spec = spec_;
    if (spec.maxiter < 0) spec.maxiter = iterations_without_limit(one.matrix.n);
    place.params = params_of<T>(spec, bound, !one.x0.empty());
    place.params.history_capacity = kHistory;
  }

  // Vectors that a block keeps on chip: as many as have room, the most used first.
  Residency residency() const {
    Residency kept;
    kept.stride = (most_rows_ + 1) / 2 * 2;
    const auto needed = needed_vectors(spec_);
    const auto all = static_cast<std::int32_t>(std::ranges::count(needed, true));
    kept.vectors =
        static_cast<std::int32_t>(std::min(at(all), kFastBytes / (at(kept.stride) * sizeof(T))));
    return kept;
  }
  // Vectors of a block in memory: p, two more that travel, and those of needed_vectors, of which b,
  // x and the inverse diagonal are each system's own.
  std::size_t work_of_block() const { return (3 + kPrivateVectors) * padded(); }
  std::size_t padded() const { return at((most_rows_ + 3) / 4 * 4); }

  // `work`: of the block that solves it.
  SolveArgs<Matrix> arguments_of(const Place& place, T* work, const Residency& kept) {
    const PrivateIndex index = private_index();
    const CsrView<T>& matrix = systems_[place.number].matrix;
    BlockShare<Matrix> share;
    share.matrix = {given_.there<const std::uint32_t>(place.row_ptr),
                    given_.there<const std::int32_t>(place.col), given_.there<const T>(place.val)};
    share.interior = {0, matrix.n, 0};
    share.boundary = {matrix.n, matrix.n, matrix.nnz()};
    share.board.flags = cleared_.there<Flag>(place.flags);
    *given_.template host<BlockShare<Matrix>>(place.share) = share;
    SolveArgs<Matrix> a;
    a.params = place.params;
    a.atol[0] = spec_.atol * place.scale;
    place_private(a.vectors, spec_, [&](std::size_t v) {
      if (v == index.b) return given_.there<T>(place.b);
      if (v == index.x) return answers_.there<T>(place.x);
      if (v == index.inverse_diagonal) return given_.there<T>(place.diagonal);
      return work + (3 + v) * padded();
    });
    a.vectors.p = work;
    for (std::size_t v = 0; v < 2; ++v) a.vectors.scratch[v] = work + (1 + v) * padded();
    a.residency = kept;
    a.shares = given_.there<const BlockShare<Matrix>>(place.share);
    a.rows = matrix.n;
    a.inverse_diagonal = given_.there<const T>(place.diagonal);
    a.slots = cleared_.there<Packet>(place.slots);
    a.outcome = answers_.there<Outcome>(place.outcome);
    a.history = cleared_.there<double>(place.history);
    return a;
  }

  void take_answer(const Place& place, SolvedOne& solved) {
    const OneOfMany<T>& one = systems_[place.number];
    const T* const x = answers_.template host<T>(place.x);
    bool finite = true;
    for (std::size_t i = 0; i < one.x.size(); ++i) {
      one.x[i] = static_cast<T>(static_cast<double>(x[i]) / place.scale);
      finite = finite && std::isfinite(one.x[i]);
    }
    SolveResult result;
    result.outcome = *answers_.template host<Outcome>(place.outcome);
    result.outcome.history_count = 0;
    unscale(result, place.scale, place.scale != 1.0 && !finite);
    solved.outcome = result.outcome;
  }

  const std::vector<OneOfMany<T>>& systems_;
  const SolveSpec& spec_;
  int device_;
  Section given_, answers_, cleared_;
  std::size_t leave_ = 0;
  std::int32_t most_rows_ = 0;
  std::vector<Place> places_;
};

}  // namespace

template <class T>
void solve_many_on_gpu(const std::vector<OneOfMany<T>>& systems, const SolveSpec& spec, int device,
                       const Progress& progress, std::vector<SolvedOne>& solved) {
  const auto begin = std::chrono::steady_clock::now();
  const auto left = [&] {
    return spec.time_limit -
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  bool stopped = false;
  const auto goes_on = [&](std::int64_t, double) {
    stopped = stopped || (progress && !progress(0, 0.0));
    return !stopped;
  };
  for (std::size_t k = 0; k < systems.size();) {
    SolveSpec rest = spec;
    if (spec.time_limit > 0.0) rest.time_limit = std::max(left(), 1e-9);
    const bool late = spec.time_limit > 0.0 && left() <= 0.0;
    if (late || !goes_on(0, 0.0)) {
      for (; k < systems.size(); ++k)
        solved[k].outcome.reason = late ? Reason::time_limit : Reason::interrupted;
      return;
    }
    Turn<T> turn(systems, rest, device);
    for (; k < systems.size() && !turn.full(); ++k)
      if (!solved[k].refused) turn.add(k);
    if (!turn.empty()) turn.run(goes_on, solved);
  }
}

template void solve_many_on_gpu(const std::vector<OneOfMany<float>>&, const SolveSpec&, int,
                                const Progress&, std::vector<SolvedOne>&);
template void solve_many_on_gpu(const std::vector<OneOfMany<double>>&, const SolveSpec&, int,
                                const Progress&, std::vector<SolvedOne>&);

}  // namespace cpufree
