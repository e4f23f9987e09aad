# SimGrid runs the simulator's graphs, too, as the reference of the event engine: an optional target,
# where its library is installed (Debian: libsimgrid-dev).
#   cmake --build BUILD --target cpufree_simgrid
find_path(CPUFREE_SIMGRID_INCLUDE simgrid/s4u.hpp)
find_library(CPUFREE_SIMGRID_LIBRARY simgrid)
mark_as_advanced(CPUFREE_SIMGRID_INCLUDE CPUFREE_SIMGRID_LIBRARY)
if(CPUFREE_SIMGRID_INCLUDE AND CPUFREE_SIMGRID_LIBRARY
   AND EXISTS "${PROJECT_SOURCE_DIR}/tools/simgrid/simulate.cpp")
  add_executable(cpufree_simgrid EXCLUDE_FROM_ALL tools/simgrid/simulate.cpp)
  target_compile_features(cpufree_simgrid PRIVATE cxx_std_20)
  target_include_directories(cpufree_simgrid SYSTEM PRIVATE "${CPUFREE_SIMGRID_INCLUDE}")
  target_link_libraries(cpufree_simgrid PRIVATE "${CPUFREE_SIMGRID_LIBRARY}")
endif()
