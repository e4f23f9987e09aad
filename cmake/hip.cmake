# The GPU engine for AMD's GPUs (CPUFREE_HIP=ON). HIP's headers are all that it needs: its runtime and
# its compiler of kernels, hiprtc, are loaded when they are first called (cpufree/gpu/hip/library.hpp).
# Kernels are compiled when they are first used; none can be built in.
set(CPUFREE_HAS_GPU_ENGINE ON)
set(CPUFREE_HAS_NVCC OFF)
if(CPUFREE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "CPUFREE_HIP=ON and CPUFREE_CUDA=ON: a build has one engine for GPUs. Leave out that "
                      "of the GPUs that the machine lacks")
endif()
if(CPUFREE_KERNELS STREQUAL "ALL")
  message(FATAL_ERROR "CPUFREE_HIP=ON: kernels for AMD's GPUs are compiled when they are first used. Use "
                      "CPUFREE_KERNELS=USUAL, or ALL_CPU")
endif()
find_path(CPUFREE_HIP_INCLUDE hip/hip_runtime_api.h HINTS "$ENV{ROCM_PATH}/include" /opt/rocm/include)
if(NOT CPUFREE_HIP_INCLUDE)
  message(FATAL_ERROR "CPUFREE_HIP=ON, but HIP's headers were not found (hip/hip_runtime_api.h). Install "
                      "ROCm (package hip-dev; libamdhip64-dev on Debian), or set CPUFREE_HIP_INCLUDE to "
                      "the folder that has hip/")
endif()
add_library(cpufree_gpu INTERFACE)
target_include_directories(cpufree_gpu INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/cpufree/gpu/hip")
target_include_directories(cpufree_gpu SYSTEM INTERFACE "${CPUFREE_HIP_INCLUDE}")
target_compile_definitions(cpufree_gpu INTERFACE CPUFREE_HIP)
if(CPUFREE_FAST_COMPILE)
  target_compile_options(cpufree_gpu INTERFACE -O0)
endif()
target_link_libraries(cpufree_gpu INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
message(STATUS "HIP: building the GPU engine with ${CPUFREE_HIP_INCLUDE} for gfx90a and gfx942: its kernels "
               "have been compiled, and have never run on such a GPU")
