// What a PE of the baselines is: one GPU with its rows, vectors, sums and streams.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cpufree/baselines/product.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree::baselines {

// Vectors whose ghosts travel. pipecg uses two in turn: one is read while the other is written.
enum class HaloVector { p, scratch };

// Sums of a reduction: where they lie, and how many there are.
struct Sums {
  int first = 0;
  int count = 0;
  bool overlapped = false;  // there is work between its begin and its end
};
inline constexpr int kSumSlots = 16;

template <class T>
struct Rank {
  Rank(int number, int on, const LocalSystem<T>& local, bool jacobi)
      : pe(number),
        device(on),
        rows(local.rows()),
        interior(local.interior),
        ghosts(local.ghosts),
        neighbours(local.neighbours),
        compute(on),
        comm(on, true),
        packed(on),
        moved(on),
        summed(on),
        product(compute, local) {
    const OnDevice here(device);
    for (DeviceArray<T>* v : {&x, &b, &r, &s, &w, &z, &n}) *v = DeviceArray<T>(compute, at(rows));
    q = DeviceArray<T>(compute, at(rows));
    for (DeviceArray<T>& v : ghosted) v = DeviceArray<T>(compute, at(rows) + at(ghosts));
    if (jacobi) inverse = DeviceArray<T>(compute, inverse_diagonal(local));
    sums = DeviceArray<double>(compute, kSumSlots);
    host_sums = MappedArray<double>(kSumSlots);
    partial =
        DeviceArray<double>(compute, at(most_blocks(compute.multiprocessors()) + 1) * kMaxSums);
    arrived = DeviceArray<unsigned>(compute, 1);
    limits = DeviceArray<Limits>(compute, 1);
    progress = DeviceArray<Progress>(compute, 1);
    reached = MappedArray<Packet>(1);
    list_sends(local);
  }

  T* vector(HaloVector which) const { return ghosted[static_cast<std::size_t>(which)].data(); }
  const T* diagonal() const { return inverse.data(); }

  int pe;
  int device;
  std::int32_t rows, interior, ghosts;
  std::vector<Neighbour> neighbours;
  std::vector<std::int64_t> first_sent;  // of each neighbour, in the buffer

  Stream compute;
  Stream comm;
  Event packed;  // on `compute`: boundary values, or sums, may be sent
  Event moved;   // on `comm`: they have been
  Event summed;
  Product<T> product;

  DeviceArray<T> x, b, r, s, w, z, n, q;
  std::array<DeviceArray<T>, 2> ghosted;
  DeviceArray<T> inverse;

  DeviceArray<double> sums;       // totals, or mine
  MappedArray<double> host_sums;  // mine, where the host finishes them
  DeviceArray<double> partial;
  DeviceArray<unsigned> arrived;
  DeviceArray<Limits> limits;
  DeviceArray<Progress> progress;
  MappedArray<Packet> reached;

  DeviceArray<std::int64_t> send_ptr;
  DeviceArray<std::int32_t> place;
  DeviceArray<T> buffer;

 private:
  static std::vector<T> inverse_diagonal(const LocalSystem<T>& local) {
    std::vector<T> inverse(at(local.rows()), T{1});
    for (std::int32_t i = 0; i < local.rows(); ++i)
      for (std::int64_t k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k) {
        const T size = local.val[at(k)] < 0 ? -local.val[at(k)] : local.val[at(k)];
        // |a_ii|, as in solvers/host/setup.cpp: an indefinite matrix is no indefinite
        // preconditioner.
        if (local.col[at(k)] == i && size > 0)
          inverse[at(i)] = static_cast<T>(1.0 / static_cast<double>(size));
      }
    return inverse;
  }

  // The buffer holds neighbour after neighbour, in the order in which each one counts its ghosts.
  void list_sends(const LocalSystem<T>& local) {
    first_sent.assign(1, 0);
    for (const Neighbour& neighbour : neighbours)
      first_sent.push_back(first_sent.back() + neighbour.sent);
    std::vector<std::int64_t> next(first_sent.begin(), first_sent.end());
    std::vector<std::int32_t> places;
    for (const Destination& destination : local.destinations) {
      std::size_t k = 0;
      while (neighbours[k].pe != destination.pe) ++k;
      places.push_back(static_cast<std::int32_t>(next[k]++));
    }
    send_ptr = DeviceArray<std::int64_t>(compute, local.send_ptr);
    place = DeviceArray<std::int32_t>(compute, places);
    buffer = DeviceArray<T>(compute, at(first_sent.back()));
  }
};

}  // namespace cpufree::baselines
