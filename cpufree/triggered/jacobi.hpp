// Jacobi iterations on CPU threads whose halos are triggered puts; and the same driven by the host,
// for comparison.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

// How halos travel: puts that the kernel triggers, in one kernel for the whole run; or copies of
// the host, between kernels of one iteration each.
enum class JacobiWay { triggered, host };

struct JacobiRun {
  JacobiWay way = JacobiWay::triggered;
  std::int64_t rows = 0;
  std::int32_t columns = 0;
  int pes = 1;
  int blocks = 1;
  std::uint32_t iterations = 0;
  double wait_limit = 60.0;
};

// Replaces `u`, rows x columns, by the values after the iterations; its border stays. Returns the
// seconds of the iterations. `look` as in Domain::run. Throws InvalidInput where the grid has fewer
// inner rows than there are blocks, or there are more than NICs can serve, EngineError where a wait
// is given up.
template <class T>
double jacobi(const JacobiRun& run, T* u, const MakeNics& make, const std::function<void()>& look);

extern template double jacobi(const JacobiRun&, float*, const MakeNics&,
                              const std::function<void()>&);
extern template double jacobi(const JacobiRun&, double*, const MakeNics&,
                              const std::function<void()>&);

}  // namespace cpufree::triggered
