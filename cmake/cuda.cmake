# Decides whether the CUDA engine is built: sets CPUFREE_HAS_GPU_ENGINE, and where its kernels are built in
# (CPUFREE_KERNELS=ALL), CPUFREE_HAS_NVCC, and enables the language.
#
# AUTO builds it where nvcc is found and the machine has a GPU: without one, minutes of compiling
# would buy nothing. ON insists on it (GPU or not), OFF leaves it out.
set(CPUFREE_HAS_GPU_ENGINE OFF)
set(CPUFREE_HAS_NVCC OFF)

# Sets `result` to whether the NVIDIA driver lists a GPU here.
function(cpufree_find_gpu result)
  file(GLOB nodes /proc/driver/nvidia/gpus/*)
  set(found OFF)
  if(nodes)
    set(found ON)
  else()
    find_program(CPUFREE_NVIDIA_SMI nvidia-smi)
    if(CPUFREE_NVIDIA_SMI)
      execute_process(COMMAND "${CPUFREE_NVIDIA_SMI}" -L RESULT_VARIABLE status
                      OUTPUT_VARIABLE listed ERROR_QUIET TIMEOUT 30)
      if(status EQUAL 0 AND listed MATCHES "GPU 0")
        set(found ON)
      endif()
    endif()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Points CUDACXX at nvcc where it is not on PATH: the toolkit's usual place, or pip's wheels.
macro(cpufree_find_nvcc)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(CPUFREE_NVCC nvcc PATHS
      /usr/local/cuda/bin
      "${Python_SITELIB}/nvidia/cu13/bin"
      "${Python_SITEARCH}/nvidia/cu13/bin")
    if(CPUFREE_NVCC)
      set(ENV{CUDACXX} "${CPUFREE_NVCC}")
    endif()
  endif()
endmacro()

# The runtime's headers and its static library alone, for kernels that are compiled when they are
# first used: those of the toolkit, or of pip's wheels nvidia-cuda-runtime and nvidia-cuda-crt.
function(cpufree_find_runtime)
  set(CPUFREE_CUDA_HOME "" CACHE PATH "CUDA's runtime: the folder that has include and lib")
  set(places "${CPUFREE_CUDA_HOME}" "${Python_SITELIB}/nvidia/cu13" "${Python_SITEARCH}/nvidia/cu13"
    /usr/local/cuda /usr/local/cuda/targets/x86_64-linux)
  find_path(CPUFREE_CUDA_INCLUDE cuda_runtime.h HINTS ${places} PATH_SUFFIXES include)
  find_path(CPUFREE_CUDA_CRT crt/host_defines.h HINTS ${places} PATH_SUFFIXES include)
  find_library(CPUFREE_CUDART NAMES libcudart_static.a HINTS ${places} PATH_SUFFIXES lib lib64)
endfunction()

if(CPUFREE_CUDA STREQUAL "AUTO")
  cpufree_find_gpu(cpufree_wants_cuda)
  if(NOT cpufree_wants_cuda)
    message(STATUS "CUDA: no GPU here, the GPU engine is left out (CPUFREE_CUDA=ON builds it)")
  endif()
elseif(CPUFREE_CUDA STREQUAL "ON")
  set(cpufree_wants_cuda ON)
elseif(CPUFREE_CUDA STREQUAL "OFF")
  set(cpufree_wants_cuda OFF)
else()
  message(FATAL_ERROR "CPUFREE_CUDA is '${CPUFREE_CUDA}'; use AUTO, ON or OFF")
endif()

# The runtime of this vendor, for cpufree/gpu: which gpu_names.hpp is found there.
macro(cpufree_add_runtime)
  set(CPUFREE_HAS_GPU_ENGINE ON)
  add_library(cpufree_gpu INTERFACE)
  target_include_directories(cpufree_gpu INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/cpufree/gpu/cuda")
  target_link_libraries(cpufree_gpu INTERFACE ${ARGN})
endmacro()

if(cpufree_wants_cuda AND NOT CPUFREE_KERNELS STREQUAL "ALL")
  cpufree_find_runtime()
  if(CPUFREE_CUDA_INCLUDE AND CPUFREE_CUDA_CRT AND CPUFREE_CUDART)
    cpufree_add_runtime("${CPUFREE_CUDART}" Threads::Threads ${CMAKE_DL_LIBS} rt)
    target_include_directories(cpufree_gpu SYSTEM INTERFACE
      "${CPUFREE_CUDA_INCLUDE}" "${CPUFREE_CUDA_CRT}")
    # What older GPUs are told (launch/gpu/gpus.cpp); of words such as "native" nothing is known.
    list(GET CMAKE_CUDA_ARCHITECTURES 0 cpufree_oldest)
    string(REGEX MATCH "^[0-9]+" cpufree_oldest "${cpufree_oldest}")
    if(cpufree_oldest)
      target_compile_definitions(cpufree_gpu INTERFACE CPUFREE_BUILT_FOR=${cpufree_oldest})
    endif()
    message(STATUS "CUDA: building the GPU engine with ${CPUFREE_CUDART}, without nvcc: kernels are "
                   "compiled when they are first used")
  elseif(CPUFREE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CPUFREE_CUDA=ON, but CUDA's runtime was not found (cuda_runtime.h, "
                        "crt/host_defines.h, libcudart_static.a). Install the toolkit, or pip install "
                        "nvidia-cuda-runtime nvidia-cuda-crt and set CPUFREE_CUDA_HOME to "
                        "site-packages/nvidia/cu13")
  else()
    message(STATUS "CUDA: there is a GPU, but CUDA's runtime was not found: the GPU engine is left "
                   "out. pip install nvidia-cuda-runtime nvidia-cuda-crt, and build again with "
                   "CPUFREE_CUDA_HOME=.../site-packages/nvidia/cu13")
  endif()
elseif(cpufree_wants_cuda)
  cpufree_find_nvcc()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)  # machine code for Hopper, and PTX for what comes after
    endif()
    enable_language(CUDA)
    if(CPUFREE_FAST_COMPILE)
      set(CMAKE_CUDA_FLAGS_RELEASE "-O0")
      string(APPEND CMAKE_CUDA_FLAGS " -DCPUFREE_FAST_COMPILE")  # solvers/gpu/kernels/kernel.cuh
      include(CheckCompilerFlag)
      check_compiler_flag(CUDA "--Ofast-compile=max" CPUFREE_HAS_OFAST_COMPILE)
      if(CPUFREE_HAS_OFAST_COMPILE)  # nvcc 12.9 and later
        string(APPEND CMAKE_CUDA_FLAGS " --Ofast-compile=max")
      endif()
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(CPUFREE_HAS_NVCC ON)
    cpufree_add_runtime(CUDA::cudart_static)
    if(CPUFREE_FAST_COMPILE)
      # Host code that needs CUDA. The rest is compiled as elsewhere: a cache of compilations has it.
      target_compile_options(cpufree_gpu INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    endif()
    message(STATUS "CUDA: building the GPU engine with ${CMAKE_CUDA_COMPILER} for compute "
                   "capability ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(CPUFREE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CPUFREE_CUDA=ON, but nvcc was not found. Put it on PATH, or set "
                        "CMAKE_CUDA_COMPILER, or choose CPUFREE_CUDA=OFF")
  else()
    message(STATUS "CUDA: there is a GPU, but nvcc was not found: the GPU engine is left out. "
                   "Install the CUDA toolkit (13 or newer) and build again, or build without nvcc: "
                   "CPUFREE_KERNELS=USUAL")
  endif()
endif()
