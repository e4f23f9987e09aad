# Sources of the library that are compiled together: a unit reads the headers that they share once,
# which is half of what they take one by one. What belongs together, some 6 s each.
#
# A program takes whole units out of the library. Those with `cpu` in their names need the CPU's kernels,
# which the engine for GPUs (_gpu.so) has not; loaded.cpp stays by itself, for that engine has a
# gpu_engine() of its own.
set(unit_base base engines)
set(unit_problem problem problem/factors problem/partition)
set(unit_blocks problem/blocks)
set(unit_formats formats formats/layout formats/slices)
set(unit_solvers solvers/host solvers/gpu)
set(unit_plan solvers/gpu/plan)
set(unit_multigrid multigrid multigrid/host)
set(unit_distributed distributed launch)
set(unit_stencils stencils/host)
set(unit_probes probes/host simulate)
set(unit_cpu launch/cpu plugins/cpu solvers/cpu multigrid/cpu stencils/cpu programs/cpu)
set(units base problem blocks formats multigrid solvers plan distributed stencils probes cpu)
set(cpu_sources solvers/host/system.cpp solvers/host/many.cpp stencils/cpu/cpu_stencil.cpp stencils/host/stencil.cpp
  probes/host/cpu.cpp)

foreach(source ${core_sources})
  file(RELATIVE_PATH path "${CMAKE_CURRENT_SOURCE_DIR}/cpufree" "${source}")
  get_filename_component(folder "${path}" DIRECTORY)
  set(group "")
  foreach(unit ${units})
    if("${folder}" IN_LIST unit_${unit} OR ("${folder}" MATCHES "^engines/" AND unit STREQUAL "base"))
      set(group ${unit})
    endif()
  endforeach()
  if("${path}" IN_LIST cpu_sources)
    set(group cpu)
  endif()
  if(NOT group AND NOT "${path}" STREQUAL plugins/gpu/loaded.cpp)
    message(FATAL_ERROR "cmake/units.cmake: cpufree/${path} is in no unit: name its folder in a unit_*")
  endif()
  set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
endforeach()
set_source_files_properties(cpufree/plugins/gpu/loaded.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
set_target_properties(cpufree_host PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
set_target_properties(cpufree_triggered_host PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
# A class with members of an anonymous namespace is one that other files could see only where its file is
# a header, which GCC takes a file in a unit for.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(library cpufree_host cpufree_triggered_host)
    target_compile_options(${library} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endforeach()
endif()

# The GPU engine in two units, where it is to be compiled quickly: one by one its files take three times as
# long, most of it for headers that they share.
function(cpufree_engine_units target)
  foreach(source ${ARGN})
    if(source MATCHES "solvers/gpu/layout/")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP layout)
    elseif(source MATCHES "(launch|multigrid|solvers)/gpu/[a-z_]+[.]cpp$")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP engine)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
