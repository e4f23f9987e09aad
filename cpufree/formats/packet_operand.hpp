// The operand of a product where ghosts travel as packets, and the product itself looks for them.
#pragma once

#include "cpufree/device/wait.hpp"

namespace cpufree {

// Columns below `limit` from memory, the others from packets, for which it waits. A wait that is
// given up sets `gone`, and the product goes on with what was there: the next reduction tells the
// block.
template <Port P, class T>
struct PacketOperand {
  static constexpr bool in_pieces = true;
  P& port;
  const T* values;
  const Packet* halo;
  const std::int32_t* source;  // slots of the senders
  std::int32_t limit;
  Epoch want;
  bool& gone;

  CPUFREE_KERNEL_FN T operator()(std::int32_t column) const {
    const std::int32_t columns[1] = {column};
    T out[1];
    fetch(columns, out);
    return out[0];
  }

  // out[k] = the operand's entry columns[k]. All are looked at together.
  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], T (&out)[N]) const {
    auto wait = port.start_wait();
    [[maybe_unused]] std::int32_t last = -1;
    const auto look_again = [&]([[maybe_unused]] bool first) {
      const bool here = look(columns, out);
      if constexpr (TracingPort<P>) {
        if (first && !here && !gone) last = begin_trace(columns);
        if (!first && here && last >= 0) port.wait_ends(halo + last, site_of(last), want);
      }
      return here;
    };
    if (look_until(look_again, [&] { return !gone && port.keep_waiting(wait); }) || gone) return;
    gone = true;
    CPUFREE_ONE_COPY
    for (const std::int32_t column : columns) {
      if (column < limit) continue;
      const Packet packet = port.get_packet(halo + (column - limit));
      if (arrived(packet.tag, want)) continue;
      return file_wait(port, wait, site_of(column - limit), want, tag_epoch(packet.tag));
    }
  }

  // Whether all packets have come.
  template <int N>
  CPUFREE_KERNEL_FN bool look(const std::int32_t (&columns)[N], T (&out)[N]) const {
    bool here = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) {
      if (columns[k] < limit) {
        out[k] = values[columns[k]];
        continue;
      }
      const Packet packet = port.get_packet(halo + (columns[k] - limit));
      out[k] = static_cast<T>(packet.value);
      here = here && arrived(packet.tag, want);
    }
    return here;
  }

 private:
  CPUFREE_KERNEL_FN WaitSite site_of(std::int32_t packet) const {
    const std::int32_t from = source[packet];
    return {Channel::halo_arrival, from / port.blocks(), from % port.blocks()};
  }
  // Tells a port that traces of a wait for the last packet that is missing now, and returns it; -1:
  // none is.
  template <int N>
  CPUFREE_KERNEL_FN std::int32_t begin_trace(const std::int32_t (&columns)[N]) const {
    std::int32_t last = -1;
    for (const std::int32_t column : columns)
      if (column >= limit && !arrived(port.get_packet(halo + (column - limit)).tag, want))
        last = column - limit;
    if (last >= 0) port.wait_begins(site_of(last), want);
    return last;
  }
};

}  // namespace cpufree
