// What generated kernels are made of whose values stay on chip: a block owns a part of every field,
// a tile, in its fast memory, from the begin of the kernel to its end. The counterpart of
// grid_runtime.hpp, whose control flow and reductions it has.
//
// A PE's rows are divided among rows of blocks, columns (the second axis) among columns of blocks.
// Around a block's part of a field lie ghosts: copies of `around` rows before and behind, and of
// `beside` columns. An exchange brings those of some fields up to date. Between two exchanges of a
// field blocks know nothing of one another.
//
// Exchange e of a field F. After a barrier of the block each thread puts points of the rim, those
// that are ghosts of others, as packets (value, e) into slot e mod 2 of F: one packet for each
// point of F, in the memory of each PE whose blocks read it. Then threads wait for the packets of
// their ghosts, each for its own, and a barrier of the block ends the exchange.
//   Read after write: a packet's halves become visible together, so who sees e has the value that
//   the owner had in exchange e. No fence is needed. No slot holds a later epoch than e while
//   a block waits for e:
//   Write after read: block X puts e + 2 into the slot of e. Let N be a block that reads a point of
//   X in e. Ghosts are symmetric (as many before as behind, along each axis; with corners or
//   without; around a ring from both ends), so X has a ghost that is a point of N. X has seen its
//   packet of e + 1, for X begins e + 2 after it has ended e + 1. N put it after the barrier that
//   begins e + 1, so after all its threads had ended e and had seen the packets of e. So N has read
//   e before X writes e + 2. All blocks exchange the same fields in the same order: control flow is
//   the same.
// Within a block a barrier lies between two groups, and at both ends of an exchange: no thread
// reads a point that another one has not written yet, or has written again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpufree/programs/grid_runtime.hpp"
#include "cpufree/programs/tile_shape.hpp"

namespace cpufree::programs {

template <GridPort P, class A>
class TileRuntime : public GridRuntime<P, A> {
  using Base = GridRuntime<P, A>;

 public:
  CPUFREE_KERNEL_FN TileRuntime(P& port, const A& args, std::byte* heap, const GridPlan& plan,
                                const BlockGrid& blocks)
      : Base(port, args, heap, plan), blocks_(blocks) {
    const int row = port.block() / blocks.columns, column = port.block() % blocks.columns;
    const std::int64_t mine = this->hi() - this->lo();
    rows_ = {static_cast<int>(this->lo() + mine * row / blocks.rows),
             static_cast<int>(this->lo() + mine * (row + 1) / blocks.rows)};
    columns_ = {static_cast<int>(blocks.width * column / blocks.columns),
                static_cast<int>(blocks.width * (column + 1) / blocks.columns)};
    if constexpr (kFastMemory) {
      memory_ = P::on_chip(port.fast_memory()) + blocks.room;
    } else {
      memory_ = heap + blocks.tiles + port.block() * blocks.tile_bytes;
    }
  }

  template <class T>
  CPUFREE_KERNEL_FN Tiled<T> tiled(std::int64_t offset, std::int64_t rows, int id, int tile) const {
    Tiled<T> f;
    static_cast<Array<T, 1>&>(f) = this->template field<T>(offset, rows, id);
    f.tile = tile;
    return f;
  }
  // The first value of a tile's memory, a ghost.
  template <class T>
  CPUFREE_KERNEL_FN T* tile(const Tiled<T>& f) const {
    return reinterpret_cast<T*>(memory_ + f.tile);
  }

  // My rows, my columns; and of the points start + step q, 0 <= q < count, the q that are mine.
  CPUFREE_KERNEL_FN Part rows() const { return rows_; }
  CPUFREE_KERNEL_FN Part columns() const { return columns_; }
  CPUFREE_KERNEL_FN static Part part(Part mine, int start, int step, int count) {
    return {bound(mine.first - start, step, count), bound(mine.end - start, step, count)};
  }

  CPUFREE_KERNEL_FN static Part wider(Part mine, int margin) {
    return {mine.first - margin, mine.end + margin};
  }

  CPUFREE_KERNEL_FN void sync() { this->port_.sync_block(); }
  // f(tile, lane) for every tile of the block's own part.
  template <int Lanes, class F>
  CPUFREE_KERNEL_FN void sweep_tile(int tiles, F&& f) {
    this->template go_over<Lanes>(0, 1, tiles, f);
  }

  // Brings a field's values from the heap, ghosts too.
  template <class T>
  CPUFREE_KERNEL_FN void load(const Tiled<T>& f, const TileShape& s) {
    const Part r = rows_of_field(s), c = columns_of_field(s);
    const int mine = static_cast<int>(this->rows_of(this->pe_, s.n0));
    const int lo = static_cast<int>(this->lo());
    const int wide = s.columns + 2 * s.beside, all = (s.rows + 2 * s.around) * wide * s.depth;
    T* const to = tile(f);
    const int lanes = this->port_.lanes();
    for (int first = this->port_.lane(); first < all; first += kBatch * lanes) {
      T values[kBatch];  // loads of several points are under way together
      int places[kBatch];
      CPUFREE_UNROLL
      for (int n = 0; n < kBatch; ++n) {
        const int k = first + n * lanes;
        const int d = k % s.depth, column = k / s.depth % wide - s.beside;
        const int row = k / s.depth / wide - s.around;
        const int i = r.first + row - lo;
        std::int64_t j = c.first + column;
        if (s.ring1) j = j < 0 ? j + s.n1 : j >= s.n1 ? j - s.n1 : j;
        const bool there = k < all && row < r.end - r.first + s.around &&
                           column < c.end - c.first + s.beside && j >= 0 && j < s.n1 &&
                           i >= -s.heap_below && i < mine + s.heap_above;
        places[n] = there ? point(s, row, column, d) : -1;
        if (there) values[n] = f.base[(i + s.heap_below) * s.heap_row + j * s.heap_column + d];
      }
      CPUFREE_UNROLL
      for (int n = 0; n < kBatch; ++n)
        if (places[n] >= 0) to[places[n]] = values[n];
    }
  }
  // Brings a field's values back to the heap.
  template <class T>
  CPUFREE_KERNEL_FN void store(const Tiled<T>& f, const TileShape& s) {
    const Part r = rows_of_field(s), c = columns_of_field(s);
    const int lo = static_cast<int>(this->lo());
    const int all = s.rows * s.columns * s.depth;
    for (int k = this->port_.lane(); k < all; k += this->port_.lanes()) {
      const int d = k % s.depth, column = k / s.depth % s.columns, row = k / s.depth / s.columns;
      if (row >= r.end - r.first || column >= c.end - c.first) continue;
      const std::int64_t i = r.first + row - lo + s.heap_below, j = c.first + column;
      f.base[i * s.heap_row + j * s.heap_column + d] = tile(f)[point(s, row, column, d)];
    }
  }

  // --- values that lie in memory, and are brought on chip for a round of turns ---

  // The part is that of a tile of `high` rows and `wide` columns, `across` of them beside another.
  CPUFREE_KERNEL_FN void place(int tile, int high, int wide, int across) {
    const int row = static_cast<int>(this->lo()) + tile / across * high;
    const int column = tile % across * wide;
    const int rows = static_cast<int>(this->hi()), columns = static_cast<int>(blocks_.width);
    rows_ = {row, row + high < rows ? row + high : rows};
    columns_ = {column, column + wide < columns ? column + wide : columns};
  }
  CPUFREE_KERNEL_FN int block() const { return this->port_.block(); }
  CPUFREE_KERNEL_FN int blocks() const { return this->port_.blocks(); }
  // Tiles of my PE.
  CPUFREE_KERNEL_FN int tiles(int high, int across) const {
    return static_cast<int>((this->hi() - this->lo() + high - 1) / high) * across;
  }
  // Whether the part with its ghosts is inside a box of rows and columns.
  CPUFREE_KERNEL_FN bool is_inside(const TileShape& s, Part rows, Part columns) const {
    return rows_.first - s.around >= rows.first && rows_.end + s.around <= rows.end &&
           columns_.first - s.beside >= columns.first && columns_.end + s.beside <= columns.end;
  }
  // Brings my part of a field to its other copy, and to the ghosts that PEs beside keep of it.
  template <class T>
  CPUFREE_KERNEL_FN void store_at(const Tiled<T>& f, const TileShape& s, T* copy,
                                  const GhostRows& ghosts) {
    const Part r = rows_of_field(s), c = columns_of_field(s);
    const int lo = static_cast<int>(this->lo());
    const int all = s.rows * s.columns * s.depth;
    const T* const from = tile(f);
    for (int k = this->port_.lane(); k < all; k += this->port_.lanes()) {
      const int d = k % s.depth, column = k / s.depth % s.columns, row = k / s.depth / s.columns;
      if (row >= r.end - r.first || column >= c.end - c.first) continue;
      const std::int64_t i = r.first + row - lo, j = c.first + column;
      Base::store(ghosts, copy + (i + s.heap_below) * s.heap_row + j * s.heap_column + d, i,
                  from[point(s, row, column, d)]);
    }
  }
  // The blocks of a PE copy N values.
  template <class T>
  CPUFREE_KERNEL_FN void copy(T* to, const T* from, std::int64_t count) {
    const std::int64_t lanes = this->port_.lanes();
    std::int64_t k = this->port_.block() * lanes + this->port_.lane();
    for (; k < count; k += this->port_.blocks() * lanes) to[k] = from[k];
  }

  // Ghosts of fields get the values that their owners have now. False: leave the kernel.
  template <class... T>
  CPUFREE_KERNEL_FN bool exchange(Exchanged<T>... fields) {
    this->port_.sync_block();
    (send(fields), ...);
    bool here = !(this->port_.lane() == 0 && this->stopped());
    ((here = here && receive(fields)), ...);
    here = this->port_.all(here);
    if constexpr (TracingPort<P>)
      if (here && this->port_.lane() == 0) (tell_of_ghosts(fields), ...);
    return here;
  }

 private:
  // Where q of start + step q is before `distance` points, at most `count`.
  CPUFREE_KERNEL_FN static int bound(int distance, int step, int count) {
    const int q = distance <= 0 ? 0 : (distance + step - 1) / step;
    return q < count ? q : count;
  }
  CPUFREE_KERNEL_FN static Part below(Part mine, std::int64_t n) {
    const int end = mine.end < n ? mine.end : static_cast<int>(n);
    return {mine.first, mine.first < end ? end : mine.first};  // tiles begin where parts do
  }
  CPUFREE_KERNEL_FN Part rows_of_field(const TileShape& s) const { return below(rows_, s.n0); }
  CPUFREE_KERNEL_FN Part columns_of_field(const TileShape& s) const {
    return below(columns_, s.n1);
  }
  CPUFREE_KERNEL_FN static int point(const TileShape& s, int row, int column, int d) {
    return ((row + s.around) * (s.columns + 2 * s.beside) + column + s.beside) * s.depth + d;
  }

  template <class T>
  CPUFREE_KERNEL_FN static double word_of(T value) {
    static_assert(sizeof(T) <= sizeof(double));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    double word = 0.0;
    std::memcpy(&word, &bits, sizeof word);
    return word;
  }
  template <class T>
  CPUFREE_KERNEL_FN static T value_of(double word) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &word, sizeof bits);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  // Packet of the point in row `row` of the packets (ghost rows come first), column j.
  CPUFREE_KERNEL_FN static std::int64_t packet(const TileShape& s, std::int64_t row, std::int64_t j,
                                               int d) {
    return (row * s.n1 + j) * s.depth + d;
  }
  CPUFREE_KERNEL_FN Packet* slot_of(const TileShape& s, Epoch epoch) const {
    return this->template at<Packet>(s.packets) + static_cast<std::int64_t>(epoch & 1U) * s.slot;
  }

  // f(row, column, d) for the points of my part that are ghosts of others. All rows of it that are
  // near its ends, then the ends of those between.
  template <class F>
  CPUFREE_KERNEL_FN void over_rim(const TileShape& s, int height, int width, F&& f) {
    const int ends = height < 2 * s.around ? height : 2 * s.around;
    const int sides = s.columns < 2 * s.beside ? s.columns : 2 * s.beside;
    const int first = ends * s.columns * s.depth;
    const int all = first + (height - ends) * sides * s.depth;
    for (int k = this->port_.lane(); k < all; k += this->port_.lanes()) {
      const bool at_end = k < first;
      const int q = at_end ? k : k - first, across = at_end ? s.columns : sides;
      int column = q / s.depth % across, row = q / s.depth / across;
      if (at_end) {
        if (ends == 2 * s.around && row >= s.around) row += height - ends;
      } else {
        row += ends / 2;
        if (width >= 2 * s.beside && column >= s.beside) column += width - 2 * s.beside;
      }
      if (column < width) f(row, column, q % s.depth);
    }
  }
  // f(row, column, d) for the ghosts around my part.
  template <class F>
  CPUFREE_KERNEL_FN void over_ghosts(const TileShape& s, int height, int width, F&& f) {
    const int wide = s.columns + 2 * s.beside;
    const int first = 2 * s.around * wide * s.depth;
    const int all = first + height * 2 * s.beside * s.depth;
    for (int k = this->port_.lane(); k < all; k += this->port_.lanes()) {
      const bool at_end = k < first;
      const int q = at_end ? k : k - first, across = at_end ? wide : 2 * s.beside;
      int column = q / s.depth % across, row = q / s.depth / across;
      if (at_end) {
        row += row < s.around ? -s.around : height - s.around;
        column -= s.beside;
        if (!s.corners && (column < 0 || column >= width)) continue;
      } else {
        column += column < s.beside ? -s.beside : width - s.beside;
      }
      if (column < width + s.beside) f(row, column, q % s.depth);
    }
  }

  template <class T>
  CPUFREE_KERNEL_FN void send(const Exchanged<T>& x) {
    const TileShape& s = x.shape;
    const Part r = rows_of_field(s), c = columns_of_field(s);
    const Epoch epoch = ++x.epoch;
    const std::uint64_t tag = make_tag(epoch, 0);
    Packet* const slot = slot_of(s, epoch);
    const T* const from = tile(x.field);
    const int pe = this->pe_, lo = static_cast<int>(this->lo());
    const std::int64_t mine = this->rows_of(pe, s.n0);
    const std::int64_t beneath = this->rows_of(this->below_me(), s.n0);
    const bool several = this->pes_ > 1;
    const bool down = several && (s.ring0 || pe > 0);
    const bool up = several && (s.ring0 || pe + 1 < this->pes_);
    if constexpr (TracingPort<P>) {
      this->port_.sums(false);  // packets of another field
      if (this->port_.lane() == 0) tell_of_rim(x, down, up);
    }
    over_rim(s, r.end - r.first, c.end - c.first, [&](int row, int column, int d) {
      const double word = word_of(from[point(s, row, column, d)]);
      const std::int64_t i = r.first + row - lo, j = c.first + column;
      this->port_.put_packet(slot + packet(s, i + s.around, j, d), pe, word, tag);
      if (down && i < s.around)
        this->port_.put_packet(slot + packet(s, i + beneath + s.around, j, d), this->below_me(),
                               word, tag);
      if (up && i >= mine - s.around)
        this->port_.put_packet(slot + packet(s, i - mine + s.around, j, d), this->above_me(), word,
                               tag);
    });
  }

  // Tells a port that traces which packets other PEs get: from the first one of each on.
  template <class T>
  CPUFREE_KERNEL_FN void tell_of_rim(const Exchanged<T>& x, bool down, bool up) {
    const TileShape& s = x.shape;
    const Part r = rows_of_field(s), c = columns_of_field(s);
    if (r.first >= r.end || c.first >= c.end) return;
    const Packet* const slot = slot_of(s, x.epoch);
    const std::int64_t mine = this->rows_of(this->pe_, s.n0);
    const std::int64_t beneath = this->rows_of(this->below_me(), s.n0);
    const std::int64_t first = r.first - this->lo(), last_ones = mine - s.around;
    if (down && first < s.around)
      this->port_.puts(slot + packet(s, first + beneath + s.around, c.first, 0), this->below_me(),
                       x.epoch);
    if (up && r.end - this->lo() > last_ones)
      this->port_.puts(slot + packet(s, (first > last_ones ? first - last_ones : 0), c.first, 0),
                       this->above_me(), x.epoch);
  }
  // And that the first one from each has come, whichever thread has waited for it.
  template <class T>
  CPUFREE_KERNEL_FN void tell_of_ghosts(const Exchanged<T>& x) {
    const TileShape& s = x.shape;
    const Part r = rows_of_field(s), c = columns_of_field(s);
    if (this->pes_ == 1 || r.first >= r.end || c.first >= c.end) return;
    const Packet* const slot = slot_of(s, x.epoch);
    const std::int64_t mine = this->rows_of(this->pe_, s.n0);
    if ((s.ring0 || this->pe_ > 0) && r.first == this->lo())
      this->port_.has_come(slot + packet(s, 0, c.first, 0), this->below_me(), x.epoch);
    if ((s.ring0 || this->pe_ + 1 < this->pes_) && r.end - this->lo() == mine)
      this->port_.has_come(slot + packet(s, mine + s.around, c.first, 0), this->above_me(),
                           x.epoch);
  }

  template <class T>
  CPUFREE_KERNEL_FN bool receive(const Exchanged<T>& x) {
    const TileShape& s = x.shape;
    const Part r = rows_of_field(s), c = columns_of_field(s);
    const Packet* const slot = slot_of(s, x.epoch);
    T* const to = tile(x.field);
    const int lo = static_cast<int>(this->lo());
    bool here = true;
    over_ghosts(s, r.end - r.first, c.end - c.first, [&](int row, int column, int d) {
      std::int64_t i = r.first + row, j = c.first + column;
      if (s.ring1) j = j < 0 ? j + s.n1 : j >= s.n1 ? j - s.n1 : j;
      if (s.ring0 && this->pes_ == 1) i = i < 0 ? i + s.n0 : i >= s.n0 ? i - s.n0 : i;
      if (j < 0 || j >= s.n1 || (!s.ring0 && (i < 0 || i >= s.n0)) || !here) return;
      double word = 0.0;
      here = pull(slot + packet(s, i - lo + s.around, j, d), x.epoch, word, s, i, j);
      if (here) to[point(s, row, column, d)] = value_of<T>(word);
    });
    return here;
  }

  // Waits for a packet: of row i of its field, maybe beyond an end, and column j.
  CPUFREE_KERNEL_FN bool pull(const Packet* from, Epoch epoch, double& word, const TileShape& s,
                              std::int64_t i, std::int64_t j) {
    Epoch seen = 0;
    const auto look = [&] {
      const Packet got = this->port_.get_packet(from);
      word = got.value, seen = tag_epoch(got.tag);
      return arrived(got.tag, epoch);
    };
    return look() || wait_until(this->port_, look, from, owner(s, i, j), epoch, seen,
                                [&] { return this->stopped(); });
  }
  // Who has a point.
  CPUFREE_KERNEL_FN WaitSite owner(const TileShape& s, std::int64_t i, std::int64_t j) const {
    i = i < 0 ? i + s.n0 : i >= s.n0 ? i - s.n0 : i;
    const std::int64_t all = this->plan_.rows;
    const std::int64_t pe = ((i + 1) * this->pes_ - 1) / all;
    const std::int64_t lo = all * pe / this->pes_, hi = all * (pe + 1) / this->pes_;
    const std::int64_t row = ((i - lo + 1) * blocks_.rows - 1) / (hi - lo);
    const std::int64_t column = ((j + 1) * blocks_.columns - 1) / blocks_.width;
    return {cpufree::Channel::halo_arrival, static_cast<int>(pe),
            static_cast<int>(row * blocks_.columns + column)};
  }

  static constexpr int kBatch = 4;
  BlockGrid blocks_;
  Part rows_{}, columns_{};
  std::byte* memory_ = nullptr;
};

}  // namespace cpufree::programs
