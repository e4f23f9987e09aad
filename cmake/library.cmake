# libcpufree: the solver behind cpufree.h, without Python. It loads kernels from the folder `cpufree`
# beside it (cpu_kernels.cmake, gpu_engine.cmake); of its own names it shows those of symbols.map.
file(GLOB library_sources CONFIGURE_DEPENDS "cpufree/library/*.cpp")
add_library(cpufree_solver SHARED ${library_sources} cpufree/plugins/cpu/levels.cpp)
target_link_libraries(cpufree_solver PRIVATE $<BUILD_INTERFACE:cpufree_host>)
target_include_directories(cpufree_solver INTERFACE
  "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_definitions(cpufree_solver PRIVATE CPUFREE_VERSION="${PROJECT_VERSION}")
set(library_symbols "${CMAKE_CURRENT_SOURCE_DIR}/cpufree/library/symbols.map")
target_link_options(cpufree_solver PRIVATE "LINKER:--version-script=${library_symbols}"
  "LINKER:-z,defs" $<$<CONFIG:Release>:-s>)
# SOVERSION: programs that were linked with this one run with each later library of the same number.
set_target_properties(cpufree_solver PROPERTIES OUTPUT_NAME cpufree VERSION "${PROJECT_VERSION}"
  SOVERSION 0 LINK_DEPENDS "${library_symbols}" CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
add_dependencies(cpufree_solver ${CPUFREE_CPU_PARTS})
if(TARGET _gpu)
  add_dependencies(cpufree_solver _gpu)
endif()
if(CPUFREE_PYTHON)  # of no use to the package: built when a test asks for it
  set_target_properties(cpufree_solver PROPERTIES EXCLUDE_FROM_ALL ON)
  install(TARGETS ${CPUFREE_CPU_PARTS}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/cpufree" ${development})
endif()

# The module as a source: what compilers make of one is for themselves alone.
add_library(cpufree_fortran INTERFACE)
target_sources(cpufree_fortran INTERFACE
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/cpufree/cpufree.f90>")
target_link_libraries(cpufree_fortran INTERFACE cpufree_solver)

install(FILES cpufree/cpufree.h cpufree/solver.hpp cpufree/library/cpufree.f90
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cpufree" ${development})
