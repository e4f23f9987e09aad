# The versions of the CPU engine's kernels, one shared object for each level of the instruction set,
# next to the extension: cpufree/systems/cpu/kernel_table.hpp says why, levels.cpp chooses one.
#
# The flags name just what levels.cpp asks the processor for.
set(cpu_flags_v2 "")
set(cpu_flags_v3 -mavx2 -mfma -mbmi -mbmi2)
set(cpu_flags_v4 ${cpu_flags_v3} -mavx512f -mavx512bw -mavx512dq -mavx512vl)

# All names but that of the table stay inside.
set(cpu_exports "${CMAKE_BINARY_DIR}/cpu_exports.map")
file(WRITE "${cpu_exports}" "{ global: cpufree_cpu_kernels; local: *; };\n")

foreach(level v2 v3 v4)
  add_library(_cpu_${level} MODULE ${cpu_kernel_sources} cpufree/engines/cpu_threads/port.cpp)
  target_link_libraries(_cpu_${level} PRIVATE cpufree_options)
  target_compile_options(_cpu_${level} PRIVATE ${cpu_flags_${level}})
  target_link_options(_cpu_${level} PRIVATE "LINKER:--version-script=${cpu_exports}"
    $<$<CONFIG:Release>:-s>)
  # Without a define of its own, a cache of compilations shares the objects of v2 with the C++ tests.
  set_target_properties(_cpu_${level} PROPERTIES
    PREFIX "" DEFINE_SYMBOL "" LINK_DEPENDS "${cpu_exports}")
  install(TARGETS _cpu_${level} LIBRARY DESTINATION cpufree)
endforeach()
