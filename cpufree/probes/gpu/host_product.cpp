// Each PE has a thread of the host, as a rank of MPI would be, with a stream for copies and one for
// kernels.
//
// Read after write. A tile that was got is there when its copy has ended: the thread, or by an
// event the stream of kernels, waits for that. For one that was put, the sender posts the round's
// epoch at the reader's word of that tile, once its copy has ended (blocking) or its event has been
// recorded (overlapped), upon which the reader's stream waits for the event.
//
// Write after read. A round has a barrier before it begins, to which a thread comes when its
// streams have ended all of the round before and its tiles have been cleared for this one. So who
// puts into a tile, or gets it, in a round finds that the reads of the one before are over; and a
// tile that has not come is one of zeros, which the check of the product finds.
#include "cpufree/probes/gpu/host_product.hpp"

#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include "cpufree/base/crew.hpp"
#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/probes/gpu/kernel.hpp"
#include "cpufree/probes/gpu/timed_way.hpp"

namespace cpufree {

namespace {

struct alignas(128) Word {
  std::atomic<Epoch> epoch{0};
};

// What a thread waits for of others: bounded, and over at once where one of them has failed.
void await_epoch(const Word& word, Epoch epoch, const std::atomic<bool>& failed, double limit) {
  const gpu::Deadline deadline(limit);
  for (unsigned look = 1; word.epoch.load(std::memory_order_acquire) < epoch; ++look) {
    if (failed.load(std::memory_order_relaxed))
      throw EngineError("another PE of a product has failed");
    if (look % 1024 != 0) continue;
    if (deadline.over()) gpu::give_up(deadline, "another PE of a product");
    std::this_thread::yield();
  }
}

// What a PE has: its tiles of A and B and those of each step, and C.
struct Seat {
  Seat(int on, std::int32_t side, std::int64_t most_entries)
      : device(on),
        kernels(on),
        copies(on),
        tiles(on, at((2 + 2 * std::int64_t{side}) * most_entries)),
        product(on, at(most_entries)),
        posted(at(2 * std::int64_t{side})) {
    for (std::int32_t k = 0; k < 2 * side; ++k) sent.emplace_back(on);
  }
  int device;
  gpu::Stream kernels, copies;
  gpu::DeviceArray<double> tiles, product;
  std::vector<gpu::Event> sent;  // by which its stream of copies tells of the tile of a step
  std::vector<Word> posted;      // the epoch by which others say that they have put that
};

class Driver;

class Product final : public HostProduct {
 public:
  Product(const std::vector<int>& gpus, int most_rows)
      : devices_(choose_devices(static_cast<int>(gpus.size()), gpus)),
        locks_(devices_),
        side_(static_cast<std::int32_t>(std::lround(std::sqrt(gpus.size())))),
        most_rows_(most_rows),
        blocks_(multiprocessors_of_pe(devices_)) {
    require(side_ > 1 && side_ * side_ == static_cast<int>(gpus.size()),
            "a product is on a square grid of PEs: 4, 9, 16");
    require(most_rows >= kTileEdge, "tiles have 32 rows at least");
    gpu_p2p::connect(devices_);
    const std::int64_t most = std::int64_t{most_rows} * most_rows;
    for (const int device : devices_) seats_.push_back(std::make_unique<Seat>(device, side_, most));
  }

  PatternTimes run(const PatternOrder& order) override {
    require(order.kind == PatternKind::gemm, "the host drives products alone");
    require(order.tile >= kTileEdge && order.tile % kTileEdge == 0 && order.tile <= most_rows_,
            "tiles of a product that the host drives have a multiple of 32 rows, up to " +
                std::to_string(most_rows_));
    require(order.repeats >= 1 && order.warm_ups >= 0, "a product is repeated once at least");
    const std::size_t pes = seats_.size();
    PatternTimes times(2 * pes * at(order.repeats));
    std::atomic<bool> failed = false;
    std::vector<Word> came(pes);
    const Epoch before = epoch_;
    epoch_ += static_cast<Epoch>(order.warm_ups) + static_cast<Epoch>(order.repeats);
    static_cast<void>(run_together(pes, failed, [&](std::size_t pe) {
      drive(static_cast<int>(pe), order, {came, failed, before}, times);
    }));
    return times;
  }

 private:
  friend class Driver;
  struct Together {
    std::vector<Word>& came;  // to the barrier of a round
    const std::atomic<bool>& failed;
    Epoch before;  // the epoch of the run before
  };
  void drive(int pe, const PatternOrder& order, const Together& all, PatternTimes& times);

  std::vector<int> devices_;
  gpu_p2p::DeviceLocks locks_;
  std::int32_t side_;  // of the grid of PEs
  int most_rows_;
  int blocks_;  // of a kernel: it leaves the others' multiprocessors, and copies, their room
  std::vector<std::unique_ptr<Seat>> seats_;
  Epoch epoch_ = 0;
};

// The thread of a PE, in one run.
class Driver {
 public:
  Driver(Product& product, int pe, const PatternOrder& order, const std::atomic<bool>& failed)
      : seats_(product.seats_),
        grid_(product.side_, pe),
        pe_(pe),
        order_(order),
        failed_(failed),
        me_(*seats_[at(pe)]),
        entries_(std::int64_t{order.tile} * order.tile),
        blocks_(product.blocks_) {}

  // Its tiles of A and B, and none of others.
  void prepare() const {
    std::vector<double> values(at(2 * entries_));
    for (std::int64_t i = 0; i < 2 * entries_; ++i) values[at(i)] = TileGrid::value(pe_, i, 0);
    gpu::copy_to_device(me_.device, me_.tiles.data(), values.data(), at(16 * entries_));
  }
  void forget() const {
    gpu::clear(tile_at(me_, 0, 0), at(16 * entries_ * grid_.side), me_.kernels);
    drain(me_.kernels);
  }
  // Returns the seconds of moving tiles.
  double round(Epoch epoch) const {
    double moving = 0.0;
    for (std::int32_t step = 0; step < grid_.side; ++step) {
      const auto fetch = [&] { move(step, epoch), await(step, epoch); };
      if (order_.overlapped)
        fetch();
      else
        moving += seconds_of(fetch);
      launch_product({input(step, 0), input(step, 1), me_.product.data(), order_.tile, step == 0},
                     blocks_, me_.kernels);
      if (!order_.overlapped) drain(me_.kernels);
    }
    drain(me_.copies);
    drain(me_.kernels);
    return moving;
  }
  // C x, of a vector x of small whole numbers, is the sum of A (B x): exactly.
  void check() const {
    const std::vector<double> c = me_.product.download(at(entries_));
    std::vector<double> x(at(order_.tile)), right(x.size()), of_b(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = 1.0 + static_cast<double>(k % 3);
    for (std::int32_t step = 0; step < grid_.side; ++step) {
      const int a = owner(step, 0), b = owner(step, 1);
      multiply(of_b, x, [&](std::int64_t i) { return TileGrid::value(b, entries_ + i, 0); });
      std::vector<double> part(x.size());
      multiply(part, of_b, [&](std::int64_t i) { return TileGrid::value(a, i, 0); });
      for (std::size_t k = 0; k < x.size(); ++k) right[k] += part[k];
    }
    std::vector<double> found(x.size());
    multiply(found, x, [&](std::int64_t i) { return c[at(i)]; });
    for (std::size_t k = 0; k < x.size(); ++k)
      if (found[k] != right[k])
        throw EngineError("a product that the host drives is wrong in row " + std::to_string(k) +
                          " of PE " + std::to_string(pe_));
  }

 private:
  template <class F>
  void multiply(std::vector<double>& y, const std::vector<double>& x, F&& entry) const {
    std::int64_t i = 0;
    for (double& sum : y) {
      sum = 0.0;
      for (const double one : x) sum += entry(i++) * one;
    }
  }
  int owner(std::int32_t step, int which) const {
    return order_.local ? pe_ : grid_.owner(step, which);
  }
  double* tile_at(const Seat& seat, std::int32_t step, int which) const {
    return seat.tiles.data() + (2 + 2 * std::int64_t{step} + which) * entries_;
  }
  static double* own(const Seat& seat, std::int64_t entries, int which) {
    return seat.tiles.data() + which * entries;
  }
  const double* input(std::int32_t step, int which) const {
    return owner(step, which) == pe_ ? own(me_, entries_, which) : tile_at(me_, step, which);
  }
  void drain(const gpu::Stream& stream) const {
    stream.drain(gpu::Deadline(order_.wait_limit), "a product that the host drives");
  }

  // Gets, or puts, what is due in a step.
  void move(std::int32_t step, Epoch epoch) const {
    for (int which = 0; !order_.local && which < 2; ++which) {
      const int other = order_.puts ? grid_.reader(step, which) : owner(step, which);
      if (other == pe_) continue;
      const Seat& there = *seats_[at(other)];
      const Seat& from = order_.puts ? me_ : there;
      const Seat& to = order_.puts ? there : me_;
      // The call of the ways host-copy and host-copy-get, out of whose times this is predicted.
      gpu::copy(tile_at(to, step, which), own(from, entries_, which), at(8 * entries_), me_.copies);
      if (order_.overlapped)
        me_.copies.record(me_.sent[at(2 * step + which)]);
      else
        drain(me_.copies);
      if (order_.puts)
        seats_[at(other)]->posted[at(2 * step + which)].epoch.store(epoch,
                                                                    std::memory_order_release);
    }
  }
  // Kernels that are launched after it find the tiles of a step.
  void await(std::int32_t step, Epoch epoch) const {
    for (int which = 0; which < 2; ++which) {
      const int from = owner(step, which);
      if (from == pe_) continue;
      const std::size_t number = at(2 * step + which);
      if (order_.puts) await_epoch(me_.posted[number], epoch, failed_, order_.wait_limit);
      if (order_.overlapped)
        me_.kernels.wait_for((order_.puts ? *seats_[at(from)] : me_).sent[number]);
    }
  }

  const std::vector<std::unique_ptr<Seat>>& seats_;
  TileGrid grid_;
  int pe_;
  const PatternOrder& order_;
  const std::atomic<bool>& failed_;
  Seat& me_;
  std::int64_t entries_;
  int blocks_;
};

void Product::drive(int pe, const PatternOrder& order, const Together& all, PatternTimes& times) {
  const gpu::OnDevice here(devices_[at(pe)]);
  const Driver driver(*this, pe, order, all.failed);
  driver.prepare();
  const std::size_t repeats = at(order.repeats);
  for (int n = 0; n < order.warm_ups + order.repeats; ++n) {
    driver.forget();
    const Epoch epoch = static_cast<Epoch>(n) + 1;
    all.came[at(pe)].epoch.store(epoch, std::memory_order_release);
    for (const Word& other : all.came) await_epoch(other, epoch, all.failed, order.wait_limit);
    double moving = 0.0;
    const double spent = seconds_of([&] { moving = driver.round(all.before + epoch); });
    if (n < order.warm_ups) continue;
    const std::size_t place = at(pe) * repeats + at(n - order.warm_ups);
    times[place] = spent;
    times[seats_.size() * repeats + place] = moving;
  }
  driver.check();
}

}  // namespace

std::unique_ptr<HostProduct> make_host_product(const std::vector<int>& gpus, int most_rows) {
  return std::make_unique<Product>(gpus, most_rows);
}

}  // namespace cpufree
