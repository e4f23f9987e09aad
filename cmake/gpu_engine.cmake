# The GPU engine as a shared object next to the extension, or with libcpufree: cpufree/plugins/gpu/engine_table.hpp says
# why, loaded.cpp loads it.

# All names but that of the table stay inside.
set(gpu_exports "${CMAKE_BINARY_DIR}/gpu_exports.map")
file(WRITE "${gpu_exports}" "{ global: cpufree_gpu_engine; local: *; };\n")

add_library(_gpu MODULE $<TARGET_OBJECTS:cpufree_gpu_engine> ${CPUFREE_KERNEL_OBJECTS})
target_link_libraries(_gpu PRIVATE cpufree_host cpufree_gpu)
# Nothing may be missing: a name that no part defines is found when the object is loaded, by the user.
target_link_options(_gpu PRIVATE "LINKER:--version-script=${gpu_exports}" "LINKER:-z,defs"
  $<$<CONFIG:Release>:-s>)
set_target_properties(_gpu PROPERTIES PREFIX "" LINK_DEPENDS "${gpu_exports}"
  LINKER_LANGUAGE CXX)
if(TARGET _core)
  add_dependencies(_core _gpu)
endif()
install(TARGETS _gpu LIBRARY DESTINATION "${CPUFREE_PARTS_FOLDER}")
