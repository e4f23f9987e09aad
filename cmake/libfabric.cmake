# NICs of libfabric: the library cpufree_libfabric, which says what is missing where its headers are
# not found. Nothing else is linked with libfabric.
set(CPUFREE_LIBFABRIC AUTO CACHE STRING "Triggered operations of libfabric: AUTO (where found), OFF")
set_property(CACHE CPUFREE_LIBFABRIC PROPERTY STRINGS AUTO OFF)
if(CPUFREE_LIBFABRIC)
  find_path(LIBFABRIC_INCLUDE_DIR rdma/fi_trigger.h)
  find_library(LIBFABRIC_LIBRARY fabric)
endif()
if(CPUFREE_LIBFABRIC AND LIBFABRIC_INCLUDE_DIR AND LIBFABRIC_LIBRARY)
  add_library(cpufree_libfabric STATIC
    cpufree/nics/libfabric/fabric.cpp cpufree/nics/libfabric/nics.cpp)
  target_include_directories(cpufree_libfabric SYSTEM PRIVATE "${LIBFABRIC_INCLUDE_DIR}")
  target_link_libraries(cpufree_libfabric PUBLIC cpufree_core PRIVATE "${LIBFABRIC_LIBRARY}")
else()
  message(STATUS "libfabric: not found, its triggered operations are left out "
                 "(apt install libfabric-dev)")
  add_library(cpufree_libfabric STATIC cpufree/nics/libfabric/absent.cpp)
  target_link_libraries(cpufree_libfabric PUBLIC cpufree_core)
endif()
