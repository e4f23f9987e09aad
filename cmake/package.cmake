# What C++, C and Fortran programs need, installed by `cmake --install` and found by
# find_package(cpufree):
#
#   cpufree::device       headers: the port, channels, reductions, bounded waits
#   cpufree::cpu_threads  the engine on CPU threads: headers, and a small static library
#   cpufree::gpu_p2p      the engine on GPUs of one host: headers for nvcc
#   cpufree::solver       libcpufree, for C and C++: all kernels that were built (CPUFREE_KERNELS=ALL)
#   cpufree::fortran      the module cpufree over it, which the program's own compiler compiles
#
# examples/08_own_kernel and examples/15_library use them. A wheel has no part of this kind: in a build of
# the package it is the component `development`, which tests install.
include(CMakePackageConfigHelpers)

add_library(cpufree_device INTERFACE)
target_include_directories(cpufree_device INTERFACE
  "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_features(cpufree_device INTERFACE cxx_std_20)

file(GLOB cpu_threads_sources CONFIGURE_DEPENDS "cpufree/engines/cpu_threads/*.cpp")
add_library(cpufree_cpu_threads STATIC ${cpu_threads_sources} cpufree/base/pages.cpp
  cpufree/base/cores.cpp)
target_link_libraries(cpufree_cpu_threads PUBLIC cpufree_device Threads::Threads
  PRIVATE $<BUILD_INTERFACE:cpufree_options>)

# An engine's kernels call constexpr functions of the standard library.
add_library(cpufree_gpu_p2p INTERFACE)
target_link_libraries(cpufree_gpu_p2p INTERFACE cpufree_device)
target_compile_options(cpufree_gpu_p2p INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr>)

set(development COMPONENT development)
if(CPUFREE_PYTHON)
  set_target_properties(cpufree_cpu_threads PROPERTIES EXCLUDE_FROM_ALL ON)
  set(development EXCLUDE_FROM_ALL COMPONENT development)
endif()
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/cpufree")
set(rooms base device gpu engines/cpu_threads engines/gpu_p2p)
foreach(room ${rooms})
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/cpufree/${room}")
    install(DIRECTORY "cpufree/${room}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cpufree/${room}"
      ${development} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
  endif()
endforeach()
set(libraries device cpu_threads gpu_p2p)
if(CPUFREE_KERNELS MATCHES "^ALL")
  include(cmake/library.cmake)
  list(APPEND libraries solver fortran)
endif()
foreach(name ${libraries})
  add_library(cpufree::${name} ALIAS cpufree_${name})
  set_target_properties(cpufree_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS cpufree_${name} EXPORT cpufree
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${development}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${development})
endforeach()
install(EXPORT cpufree FILE cpufreeTargets.cmake NAMESPACE cpufree:: DESTINATION "${package_folder}"
  ${development})
configure_file(cmake/cpufreeConfig.cmake.in "${CMAKE_BINARY_DIR}/cpufreeConfig.cmake" @ONLY)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/cpufreeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/cpufreeConfig.cmake"
  "${CMAKE_BINARY_DIR}/cpufreeConfigVersion.cmake" DESTINATION "${package_folder}" ${development})
