# The solver kernels for GPUs in several nodes: device code alone, linked with the calls of a library
# (engines/remote/calls.cuh) in a file that is loaded where one of them is wanted:
# - _nvshmem.fatbin, with NVSHMEM's device library, where headers and device library are found: pip's
#   nvidia-nvshmem-cu13, or CPUFREE_NVSHMEM_HOME;
# - _nccl.fatbin, where NCCL's headers are found: pip's nvidia-nccl-cu13 of version 2.28 or newer, or
#   CPUFREE_NCCL_HOME.
set(CPUFREE_NVSHMEM_HOME "" CACHE PATH "NVSHMEM: the folder that has include and lib")
set(CPUFREE_NCCL_HOME "" CACHE PATH "NCCL: the folder that has include")
set(places "${CPUFREE_NVSHMEM_HOME}" "${Python_SITELIB}/nvidia/nvshmem"
  "${Python_SITEARCH}/nvidia/nvshmem")
find_path(CPUFREE_NVSHMEM_INCLUDE nvshmem.h HINTS ${places} PATH_SUFFIXES include)
find_library(CPUFREE_NVSHMEM_DEVICE NAMES libnvshmem_device.a HINTS ${places} PATH_SUFFIXES lib)
find_path(CPUFREE_NCCL_INCLUDE nccl_device.h HINTS "${CPUFREE_NCCL_HOME}"
  "${Python_SITELIB}/nvidia/nccl" "${Python_SITEARCH}/nvidia/nccl" PATH_SUFFIXES include
  NO_DEFAULT_PATH)
set(libraries "")
if(CPUFREE_NVSHMEM_INCLUDE AND CPUFREE_NVSHMEM_DEVICE)
  list(APPEND libraries nvshmem)
endif()
if(CPUFREE_NCCL_INCLUDE)
  list(APPEND libraries nccl)
endif()
if(NOT libraries)
  message(STATUS "kernels for GPUs in several nodes are left out: neither NVSHMEM nor NCCL was found "
                 "(pip install nvidia-nvshmem-cu13, or set CPUFREE_NVSHMEM_HOME)")
  return()
endif()
# What runs is machine code alone: PTX cannot be linked with a library.
set(code "")
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  string(REGEX MATCH "^[0-9]+[a-z]?" number "${architecture}")
  if(NOT number)
    message(STATUS "kernels for GPUs in several nodes are left out: they need architectures by "
                   "number, not '${architecture}'")
    return()
  endif()
  list(APPEND code "-gencode=arch=compute_${number},code=sm_${number}")
endforeach()

set(remote_sources cpufree/probes/gpu/remote/litmus.cu)
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

# Relocatable device code. -I: nvcc's own folder, which may have another NCCL, comes before -isystem.
function(remote_objects name include)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  set_target_properties(${name} PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
  target_link_libraries(${name} PRIVATE cpufree_options)
  # 128 registers: so many as blocks of 512 threads have, also in functions that are not inlined.
  target_compile_options(${name} PRIVATE --expt-relaxed-constexpr -maxrregcount=128 ${include})
endfunction()
remote_objects(cpufree_remote "" ${remote_sources})

set(remote_files "")
# remote_file(NAME DEVICE_LIBRARY OBJECTS...): links objects into NAME.fatbin.
function(remote_file name device_library)
  set(file "${CMAKE_BINARY_DIR}/${name}.fatbin")
  set(objects "")
  foreach(target ${ARGN})
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  add_custom_command(OUTPUT "${file}"
    COMMAND "${CMAKE_CUDA_COMPILER}" ${code} -dlink -fatbin ${objects} ${device_library} -o "${file}"
    DEPENDS ${ARGN} ${objects} ${device_library}
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking ${name}.fatbin")
  set(remote_files "${remote_files};${file}" PARENT_SCOPE)
endfunction()

if("nvshmem" IN_LIST libraries)
  message(STATUS "NVSHMEM: kernels for GPUs in several nodes, with ${CPUFREE_NVSHMEM_DEVICE}")
  # For a message, where the library of another version is found at run time.
  set(numbers "")
  if(EXISTS "${CPUFREE_NVSHMEM_INCLUDE}/non_abi/nvshmem_version.h")
    file(STRINGS "${CPUFREE_NVSHMEM_INCLUDE}/non_abi/nvshmem_version.h" numbers
      REGEX "VENDOR_(MAJOR|MINOR|PATCH)_VERSION [0-9]+")
  endif()
  list(TRANSFORM numbers REPLACE ".* ([0-9]+).*" "\\1")
  list(JOIN numbers "." version)
  set_source_files_properties(cpufree/engines/remote/nvshmem/library.cpp PROPERTIES
    COMPILE_DEFINITIONS "CPUFREE_NVSHMEM_BUILT=\"${version}\"")
  set(include "-isystem=${CPUFREE_NVSHMEM_INCLUDE}")
  remote_objects(cpufree_nvshmem_calls "${include}" cpufree/engines/remote/nvshmem/calls.cu)
  remote_file(_nvshmem "${CPUFREE_NVSHMEM_DEVICE}" cpufree_remote cpufree_nvshmem_calls)
  # The kernel that measures NVSHMEM's messages, in a file of its own.
  remote_objects(cpufree_nvshmem_probe "${include}" cpufree/probes/nvshmem.cu)
  remote_file(_nvshmem_probe "${CPUFREE_NVSHMEM_DEVICE}" cpufree_nvshmem_probe)
endif()
if("nccl" IN_LIST libraries)
  message(STATUS "NCCL: kernels for GPUs in several nodes, with ${CPUFREE_NCCL_INCLUDE}/nccl_device.h")
  remote_objects(cpufree_nccl_calls "-I${CPUFREE_NCCL_INCLUDE}" cpufree/engines/remote/nccl/calls.cu)
  remote_file(_nccl "" cpufree_remote cpufree_nccl_calls)
endif()
add_custom_target(_remote DEPENDS ${remote_files})
if(CPUFREE_PYTHON)
  add_dependencies(_gpu _remote)
  install(FILES ${remote_files} DESTINATION cpufree)
endif()
