// Packets of values of a type: as many as fit into 16 bytes beside the number of the exchange.
#pragma once

#include "cpufree/device/warp_port.hpp"

namespace cpufree {

template <class T>
struct ValuePacket;
template <>
struct ValuePacket<float> {
  using Type = FloatPacket;
  static constexpr int kValues = 3;
  CPUFREE_KERNEL_FN static float value(const FloatPacket& packet, int k) { return packet.value[k]; }
  template <WarpPort P>
  CPUFREE_KERNEL_FN static void send(P& port, FloatPacket* to, const float (&values)[3],
                                     Epoch epoch) {
    port.send_packet(to, values, static_cast<std::uint32_t>(epoch));
  }
};
template <>
struct ValuePacket<double> {
  using Type = Packet;
  static constexpr int kValues = 1;
  CPUFREE_KERNEL_FN static double value(const Packet& packet, int) { return packet.value; }
  template <WarpPort P>
  CPUFREE_KERNEL_FN static void send(P& port, Packet* to, const double (&values)[1], Epoch epoch) {
    port.send_packet(to, values[0], make_tag(epoch, 0U));
  }
};

}  // namespace cpufree
