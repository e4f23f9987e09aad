# The headers of the GPU's kernels as text, for kernels that are compiled when they are first used: a
# C++ file, CPUFREE_KERNEL_HEADERS, made anew where one of them has changed.
set(kernel_vendor cuda)
if(CPUFREE_HIP)
  set(kernel_vendor hip)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
set(CPUFREE_KERNEL_HEADERS "${PROJECT_BINARY_DIR}/kernel_headers.cpp")
add_custom_command(OUTPUT "${CPUFREE_KERNEL_HEADERS}"
  COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/embed_headers.py"
    "${CPUFREE_KERNEL_HEADERS}" "${CPUFREE_KERNEL_HEADERS}.d" ${kernel_vendor}
  DEPENDS "${PROJECT_SOURCE_DIR}/cmake/embed_headers.py"
  DEPFILE "${CPUFREE_KERNEL_HEADERS}.d" VERBATIM)
