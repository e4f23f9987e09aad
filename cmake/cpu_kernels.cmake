# The kernels of the CPU engine. In the package, and with libcpufree, they are shared objects, one for
# each level of the instruction set: cpufree/plugins/cpu/kernel_table.hpp says why, levels.cpp chooses
# one. Elsewhere (C++ tests) they are a library, in one version.
#
# CPUFREE_KERNELS=USUAL builds in what most solves run; all others are compiled when they are first
# used, by the compiler of programs (python/cpufree/cpu_kernels.py). ALL builds in all of them but
# those of studies and of several nodes on one machine, which measurements and tests alone ask for.

# What each family is compiled with besides, here and when it is first used. Which products are fused
# with which sums would be up to each instance of a template; kernels whose halos are stores and those
# whose halos are packets are to give the same bits, and a column that is solved together with others
# has those of one by itself.
set(cpu_flags_solvers -ffp-contract=off)
# Versions of a loop for each value of what does not change in it: half the time that columns take to
# compile, and none of what they take to run.
set(cpu_flags_columns -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cpu_flags_columns -fno-unswitch-loops)
endif()
set(cpu_flags_stencils -ffp-contract=fast)

set(cpu_folder cpufree/solvers/cpu)
set(cpu_tables cpufree/plugins/cpu)
# In two files, which compile side by side.
set(cpu_usual_sources ${cpu_folder}/usual_float_kernel.cpp ${cpu_folder}/usual_double_kernel.cpp)
set(cpu_other_sources ${cpu_folder}/other_kernel.cpp ${cpu_folder}/columns_kernel.cpp
  cpufree/stencils/cpu/cpu_stencil_kernel.cpp)
set(cpu_rare_sources ${cpu_folder}/remote_kernel.cpp ${cpu_folder}/study_kernel.cpp)
set_source_files_properties(${cpu_usual_sources} ${cpu_folder}/other_kernel.cpp ${cpu_rare_sources}
  PROPERTIES COMPILE_OPTIONS "${cpu_flags_solvers}")
set_source_files_properties(${cpu_folder}/columns_kernel.cpp
  PROPERTIES COMPILE_OPTIONS "${cpu_flags_columns}")
set_source_files_properties(cpufree/stencils/cpu/cpu_stencil_kernel.cpp
  PROPERTIES COMPILE_OPTIONS "${cpu_flags_stencils}")

# The flags of a level, as a file that kernels include (kernel_table.hpp).
function(cpu_flags_header folder flags)
  list(JOIN flags " " level)
  list(JOIN cpu_flags_solvers " " solvers)
  list(JOIN cpu_flags_columns " " columns)
  list(JOIN cpu_flags_stencils " " stencils)
  file(CONFIGURE OUTPUT "${folder}/cpu_kernel_flags.hpp" CONTENT [[
// What the kernels beside this file are compiled with: written by cmake/cpu_kernels.cmake.
inline constexpr cpufree::CpuKernelFlags kCpuKernelFlags = {
    "@level@", "@solvers@", "@columns@", "@stencils@"};
]] @ONLY)
endfunction()

# What -march=native lets the compiler use, by the names of /proc/cpuinfo, into `result`.
function(cpu_native_features result)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE macros ERROR_QUIET)
  set(names SSE4_2 POPCNT AVX AVX2 FMA BMI=bmi1 BMI2 LZCNT=abm F16C MOVBE ADX AVX512F AVX512BW
    AVX512DQ AVX512VL AVX512CD AVX512IFMA AVX512VBMI AVX512VBMI2=avx512_vbmi2
    AVX512VNNI=avx512_vnni AVX512BITALG=avx512_bitalg AVX512VPOPCNTDQ=avx512_vpopcntdq
    AVX512BF16=avx512_bf16 AVX512FP16=avx512_fp16 AVXVNNI=avx_vnni GFNI VAES VPCLMULQDQ
    ARM_FEATURE_ATOMICS=atomics ARM_FEATURE_CRC32=crc32 ARM_FEATURE_QRDMX=asimdrdm
    ARM_FEATURE_DOTPROD=asimddp ARM_FEATURE_FP16_VECTOR_ARITHMETIC=asimdhp ARM_FEATURE_BF16=bf16
    ARM_FEATURE_MATMUL_INT8=i8mm ARM_FEATURE_SVE=sve ARM_FEATURE_SVE2=sve2)
  set(found "")
  foreach(name ${names})
    string(REGEX REPLACE "=.*" "" macro ${name})
    string(REGEX REPLACE ".*=" "" feature ${name})
    string(TOLOWER ${feature} feature)
    if(macros MATCHES "#define __${macro}__ ")
      list(APPEND found ${feature})
    endif()
  endforeach()
  list(JOIN found " " found)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

set(cpu_kernel_optimization -O3)
if(CPUFREE_SANITIZE)
  set(cpu_kernel_optimization "")
endif()
set(cpu_native_features "")
if(CPUFREE_NATIVE AND CPUFREE_HAS_NATIVE)
  set(cpu_levels native)
  set(cpu_flags_native ${cpu_kernel_optimization} -march=native)
  cpu_native_features(cpu_native_features)
elseif(is_x86_64)
  set(cpu_levels v2 v3)
  set(cpu_flags_v2 ${cpu_kernel_optimization} -march=x86-64-v2)
  set(cpu_flags_v3 ${cpu_flags_v2} -mavx2 -mfma -mbmi -mbmi2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(cpu_levels neon sve)
  set(cpu_flags_neon ${cpu_kernel_optimization} -march=armv8-a)
  set(cpu_flags_sve ${cpu_kernel_optimization} -march=armv8.2-a+sve)
else()
  set(cpu_levels baseline)
  set(cpu_flags_baseline ${cpu_kernel_optimization})
endif()

# The kernels of each level, compiled once for all that they are linked into.
foreach(level ${cpu_levels})
  cpu_flags_header("${CMAKE_BINARY_DIR}/cpu_kernels/${level}" "${cpu_flags_${level}}")
  foreach(kind usual other rare)
    add_library(cpu_${kind}_${level} OBJECT EXCLUDE_FROM_ALL ${cpu_${kind}_sources})
    target_link_libraries(cpu_${kind}_${level} PRIVATE cpufree_options)
    target_compile_options(cpu_${kind}_${level} PRIVATE ${cpu_flags_${level}})
  endforeach()
endforeach()

# The library of C++ programs: the lowest of these levels.
list(GET cpu_levels 0 level)
add_library(cpufree_kernels STATIC EXCLUDE_FROM_ALL ${cpu_tables}/all_kernels.cpp
  ${cpu_tables}/linked.cpp $<TARGET_OBJECTS:cpu_usual_${level}> $<TARGET_OBJECTS:cpu_other_${level}>
  $<TARGET_OBJECTS:cpu_rare_${level}>)
target_link_libraries(cpufree_kernels PRIVATE cpufree_options)
target_include_directories(cpufree_kernels PRIVATE "${CMAKE_BINARY_DIR}/cpu_kernels/${level}")
set_source_files_properties(${cpu_tables}/linked.cpp PROPERTIES
  COMPILE_DEFINITIONS CPUFREE_CPU_LEVEL="${level}")

function(add_cpu_kernels_of_package)
  # All names but that of the table stay inside.
  set(exports "${CMAKE_BINARY_DIR}/cpu_exports.map")
  file(WRITE "${exports}" "{ global: cpufree_cpu_kernels; local: *; };\n")
  foreach(level ${cpu_levels})
    set(kernels ${cpu_tables}/usual_kernels.cpp $<TARGET_OBJECTS:cpu_usual_${level}>)
    if(CPUFREE_KERNELS MATCHES "^ALL")
      set(kernels ${cpu_tables}/all_kernels.cpp $<TARGET_OBJECTS:cpu_usual_${level}>
        $<TARGET_OBJECTS:cpu_other_${level}>)
    endif()
    add_library(_cpu_${level} MODULE ${kernels} cpufree/engines/cpu_threads/port.cpp)
    target_link_libraries(_cpu_${level} PRIVATE cpufree_options)
    target_compile_options(_cpu_${level} PRIVATE ${cpu_flags_${level}})
    target_include_directories(_cpu_${level} PRIVATE "${CMAKE_BINARY_DIR}/cpu_kernels/${level}")
    target_link_options(_cpu_${level} PRIVATE "LINKER:--version-script=${exports}"
      $<$<CONFIG:Release>:-s>)
    set_target_properties(_cpu_${level} PROPERTIES
      PREFIX "" DEFINE_SYMBOL "" LINK_DEPENDS "${exports}")
    install(TARGETS _cpu_${level} LIBRARY DESTINATION "${CPUFREE_PARTS_FOLDER}")
    list(APPEND parts _cpu_${level})
  endforeach()
  set(CPUFREE_CPU_PARTS ${parts} PARENT_SCOPE)
  list(JOIN cpu_levels " " levels)
  set_source_files_properties(${cpu_tables}/levels.cpp PROPERTIES COMPILE_DEFINITIONS
    "CPUFREE_CPU_LEVELS=\"${levels}\";CPUFREE_NATIVE_FEATURES=\"${cpu_native_features}\"")
endfunction()
