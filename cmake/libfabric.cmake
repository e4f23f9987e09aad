# NICs of libfabric: the library cpufree_libfabric, for tests, and the shared object _nics_libfabric
# beside the extension, which is loaded when it is asked for. Nothing is linked with libfabric: its
# providers' libraries do things when they are loaded (triggered/back_ends.cpp).
set(CPUFREE_LIBFABRIC AUTO CACHE STRING "Triggered operations of libfabric: AUTO (where found), OFF")
set_property(CACHE CPUFREE_LIBFABRIC PROPERTY STRINGS AUTO OFF)
if(CPUFREE_LIBFABRIC)
  find_path(LIBFABRIC_INCLUDE_DIR rdma/fi_trigger.h)
  find_library(LIBFABRIC_LIBRARY fabric)
endif()
if(CPUFREE_LIBFABRIC AND LIBFABRIC_INCLUDE_DIR AND LIBFABRIC_LIBRARY)
  add_library(cpufree_libfabric STATIC EXCLUDE_FROM_ALL
    cpufree/triggered/nics/libfabric/fabric.cpp cpufree/triggered/nics/libfabric/nics.cpp)
  target_include_directories(cpufree_libfabric SYSTEM PUBLIC "${LIBFABRIC_INCLUDE_DIR}")
  target_link_libraries(cpufree_libfabric PUBLIC cpufree_triggered_host PRIVATE "${LIBFABRIC_LIBRARY}")
  if(CPUFREE_PYTHON)
    add_library(_nics_libfabric MODULE cpufree/triggered/nics/libfabric/plugin.cpp)
    target_link_libraries(_nics_libfabric PRIVATE cpufree_libfabric)
    set_target_properties(_nics_libfabric PROPERTIES PREFIX "" INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS _nics_libfabric LIBRARY DESTINATION cpufree OPTIONAL)
  endif()
else()
  message(STATUS "libfabric: not found, its triggered operations and their tests are left out "
                 "(apt install libfabric-dev)")
endif()
