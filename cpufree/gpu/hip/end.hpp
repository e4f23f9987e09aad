// What the text of every kernel ends with where HIP's compiler reads it: ends what prelude.hpp has
// begun.

#pragma clang attribute pop
#pragma clang force_cuda_host_device end
