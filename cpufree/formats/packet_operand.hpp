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
    const auto look_at_all = [&](bool) { return look(columns, out); };
    const auto go_on = [&] { return !gone && port.keep_waiting(wait); };
    bool here = false;
    if constexpr (TracingPort<P>) {
      const auto at = [&](int k) { return halo + (columns[k] - limit); };
      const auto site = [&](int k) { return site_of(columns[k] - limit); };
      const auto lacks = [&](int k) {
        return columns[k] >= limit && !gone && !arrived(port.get_packet(at(k)).tag, want);
      };
      here = look_until(traced_look<N>(port, look_at_all, at, site, want, lacks), go_on);
    } else {
      here = look_until(look_at_all, go_on);
    }
    if (here || gone) return;
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
};

}  // namespace cpufree
