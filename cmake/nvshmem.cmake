# The solver kernels that call NVSHMEM, for GPUs in several nodes: device code alone, linked with NVSHMEM's
# device library, in the file _nvshmem.fatbin, which is loaded where one of them is wanted. Made where NVSHMEM's headers and device library are found: pip's nvidia-nvshmem-cu13,
# or CPUFREE_NVSHMEM_HOME.
set(CPUFREE_NVSHMEM_HOME "" CACHE PATH "NVSHMEM: the folder that has include and lib")
set(places "${CPUFREE_NVSHMEM_HOME}" "${Python_SITELIB}/nvidia/nvshmem"
  "${Python_SITEARCH}/nvidia/nvshmem")
find_path(CPUFREE_NVSHMEM_INCLUDE nvshmem.h HINTS ${places} PATH_SUFFIXES include)
find_library(CPUFREE_NVSHMEM_DEVICE NAMES libnvshmem_device.a HINTS ${places} PATH_SUFFIXES lib)
if(NOT CPUFREE_NVSHMEM_INCLUDE OR NOT CPUFREE_NVSHMEM_DEVICE)
  message(STATUS "NVSHMEM: not found, kernels for GPUs in several nodes are left out "
                 "(pip install nvidia-nvshmem-cu13, or set CPUFREE_NVSHMEM_HOME)")
  return()
endif()
message(STATUS "NVSHMEM: kernels for GPUs in several nodes, with ${CPUFREE_NVSHMEM_DEVICE}")

# For a message, where the library of another version is found at run time.
set(numbers "")
if(EXISTS "${CPUFREE_NVSHMEM_INCLUDE}/non_abi/nvshmem_version.h")
  file(STRINGS "${CPUFREE_NVSHMEM_INCLUDE}/non_abi/nvshmem_version.h" numbers
    REGEX "VENDOR_(MAJOR|MINOR|PATCH)_VERSION [0-9]+")
endif()
list(TRANSFORM numbers REPLACE ".* ([0-9]+).*" "\\1")
list(JOIN numbers "." version)
set_source_files_properties(cpufree/launch/gpu/heaps.cpp PROPERTIES
  COMPILE_DEFINITIONS "CPUFREE_NVSHMEM_BUILT=\"${version}\"")

set(remote_sources cpufree/engines/nvshmem/calls.cu)
foreach(method_and_algorithm cg:ConjugateGradient prcg:PredictRecompute pipecg:PipelinedCg
        minres:MinimalResidual bicgstab:StabilizedBiCg)
  string(REPLACE ":" ";" pair ${method_and_algorithm})
  list(GET pair 0 method)
  list(GET pair 1 algorithm)
  foreach(pc_and_class none:Identity jacobi:Jacobi chebyshev:Chebyshev factored:Factored)
    string(REPLACE ":" ";" pair ${pc_and_class})
    list(GET pair 0 pc)
    list(GET pair 1 preconditioner)
    if((method STREQUAL "minres" AND pc STREQUAL "chebyshev")
       OR (method STREQUAL "bicgstab" AND pc MATCHES "chebyshev|factored"))
      continue()
    endif()
    foreach(type float double)
      set(source "${CMAKE_BINARY_DIR}/kernels/remote_${method}_${pc}_${type}.cu")
      configure_file(cpufree/solvers/gpu/kernels/remote_kernel.cu.in "${source}" @ONLY)
      list(APPEND remote_sources "${source}")
    endforeach()
  endforeach()
endforeach()
add_library(cpufree_remote OBJECT EXCLUDE_FROM_ALL ${remote_sources})
set_target_properties(cpufree_remote PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_include_directories(cpufree_remote SYSTEM PRIVATE "${CPUFREE_NVSHMEM_INCLUDE}")
target_link_libraries(cpufree_remote PRIVATE cpufree_options)
# 128 registers: so many as blocks of 512 threads have, also in functions that are not inlined.
target_compile_options(cpufree_remote PRIVATE --expt-relaxed-constexpr -maxrregcount=128)

# What runs is machine code alone: PTX cannot be linked with the library.
set(code "")
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  string(REGEX MATCH "^[0-9]+[a-z]?" number "${architecture}")
  if(NOT number)
    message(STATUS "NVSHMEM: kernels for GPUs in several nodes are left out: they need architectures by "
                   "number, not '${architecture}'")
    return()
  endif()
  list(APPEND code "-gencode=arch=compute_${number},code=sm_${number}")
endforeach()
set(CPUFREE_REMOTE_KERNELS "${CMAKE_BINARY_DIR}/_nvshmem.fatbin")
add_custom_command(OUTPUT "${CPUFREE_REMOTE_KERNELS}"
  COMMAND "${CMAKE_CUDA_COMPILER}" ${code} -dlink -fatbin $<TARGET_OBJECTS:cpufree_remote>
    "${CPUFREE_NVSHMEM_DEVICE}" -o "${CPUFREE_REMOTE_KERNELS}"
  DEPENDS cpufree_remote $<TARGET_OBJECTS:cpufree_remote> "${CPUFREE_NVSHMEM_DEVICE}"
  COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking _nvshmem.fatbin")
# The kernel that measures NVSHMEM's messages, in a file of its own.
add_library(cpufree_nvshmem_probe OBJECT EXCLUDE_FROM_ALL cpufree/probes/nvshmem.cu)
set_target_properties(cpufree_nvshmem_probe PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_include_directories(cpufree_nvshmem_probe SYSTEM PRIVATE "${CPUFREE_NVSHMEM_INCLUDE}")
target_link_libraries(cpufree_nvshmem_probe PRIVATE cpufree_options)
target_compile_options(cpufree_nvshmem_probe PRIVATE --expt-relaxed-constexpr)
set(CPUFREE_NVSHMEM_PROBE "${CMAKE_BINARY_DIR}/_nvshmem_probe.fatbin")
add_custom_command(OUTPUT "${CPUFREE_NVSHMEM_PROBE}"
  COMMAND "${CMAKE_CUDA_COMPILER}" ${code} -dlink -fatbin
    $<TARGET_OBJECTS:cpufree_nvshmem_probe> "${CPUFREE_NVSHMEM_DEVICE}" -o "${CPUFREE_NVSHMEM_PROBE}"
  DEPENDS cpufree_nvshmem_probe $<TARGET_OBJECTS:cpufree_nvshmem_probe> "${CPUFREE_NVSHMEM_DEVICE}"
  COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking _nvshmem_probe.fatbin")
add_custom_target(_nvshmem_probe DEPENDS "${CPUFREE_NVSHMEM_PROBE}")
add_custom_target(_nvshmem DEPENDS "${CPUFREE_REMOTE_KERNELS}" "${CPUFREE_NVSHMEM_PROBE}")
if(CPUFREE_PYTHON)
  add_dependencies(_gpu _nvshmem)
  install(FILES "${CPUFREE_REMOTE_KERNELS}" "${CPUFREE_NVSHMEM_PROBE}" DESTINATION cpufree)
endif()
