# The host-driven baselines: the library cpufree_baselines, and the extension cpufree._baselines
# (with the vendor's libraries, which nothing else needs); cpufree._baselines_mpi where MPI is found.
set(baseline_sources cpufree/run/baseline.cpp)
set_source_files_properties(${baseline_sources} PROPERTIES LANGUAGE CUDA)
add_library(cpufree_baselines OBJECT ${baseline_sources} cpufree/baselines/nccl_library.cpp)
target_include_directories(cpufree_baselines PUBLIC cpufree/baselines/cuda)
target_link_libraries(cpufree_baselines PUBLIC cpufree_options CUDA::cudart_static)
target_compile_options(cpufree_baselines PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
    -Xfatbin=-compress-all>)
if(CPUFREE_WERROR)
  target_compile_options(cpufree_baselines PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
endif()

if(CPUFREE_PYTHON)
  nanobind_add_module(_baselines STABLE_ABI NB_STATIC cpufree/bindings/baselines.cpp)
  target_link_libraries(_baselines PRIVATE
    cpufree_baselines cpufree_core CUDA::cusparse CUDA::cublas ${CMAKE_DL_LIBS})
  set_target_properties(_baselines PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS _baselines LIBRARY DESTINATION cpufree)
endif()
