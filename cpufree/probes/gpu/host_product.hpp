// A product of matrices in tiles, driven by the host: the counterpart of what TileProduct
// (cpufree/probes/patterns.hpp) does within a kernel.
#pragma once

#include <memory>
#include <vector>

#include "cpufree/probes/host/prober.hpp"

namespace cpufree {

class HostProduct {
 public:
  virtual ~HostProduct() = default;
  // A product by copies of the copy engine and launches of kernels, which a thread of the host
  // drives for each PE. A kernel takes the PE's part of the multiprocessors. Blocking: it waits for
  // the end of a tile before the next one, and for that of a step's multiplication. Overlapped:
  // copies and kernels are queued on two streams. Rows of a tile are a multiple of 32. Throws
  // InvalidInput, EngineError where the product is wrong.
  virtual PatternTimes run(const PatternOrder& order) = 0;
};

// `gpus`: one for each PE, which may share them. Tiles have up to `most_rows` rows.
std::unique_ptr<HostProduct> make_host_product(const std::vector<int>& gpus, int most_rows);

}  // namespace cpufree
