#include "cpufree/solvers/gpu/kernels/many_kernel.hpp"

#include "cpufree/launch/gpu/compiled/store.hpp"

namespace cpufree {

template <class T>
const void* many_kernel(const SolveSpec& spec, int device) {
  const int devices[] = {device};
  return only_kernel(compiled_code({many_source(spec, type_name<T>())}, devices)[0]);
}
template const void* many_kernel<float>(const SolveSpec&, int);
template const void* many_kernel<double>(const SolveSpec&, int);

}  // namespace cpufree
