# The host-driven baselines: the library cpufree_baselines, and the extension cpufree._baselines
# (with the vendor's libraries, which nothing else needs); cpufree._baselines_mpi where MPI is found.
set(baseline_sources cpufree/baselines/drivers/solvers.cpp cpufree/baselines/drivers/stencil.cpp)
set_source_files_properties(${baseline_sources} PROPERTIES LANGUAGE CUDA)
function(cpufree_baseline_options target)
  target_include_directories(${target} PUBLIC cpufree/baselines/cuda)
  target_link_libraries(${target} PUBLIC cpufree_options cpufree_gpu)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
      -Xfatbin=-compress-all>)
  if(CPUFREE_WERROR)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
  endif()
endfunction()

add_library(cpufree_baselines OBJECT ${baseline_sources} cpufree/baselines/nccl_library.cpp
  cpufree/baselines/nvshmem_library.cpp)
cpufree_baseline_options(cpufree_baselines)

if(CPUFREE_PYTHON)
  # Domains of their own: what one extension throws, the others do not translate.
  nanobind_add_module(_baselines STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN cpufree_baselines
                      cpufree/bindings/baselines/baselines.cpp)
  target_link_libraries(_baselines PRIVATE
    cpufree_baselines cpufree_host CUDA::cusparse CUDA::cublas ${CMAKE_DL_LIBS})
  set_target_properties(_baselines PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS _baselines LIBRARY DESTINATION cpufree OPTIONAL)
endif()

find_package(MPI COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set_source_files_properties(cpufree/baselines/drivers/mpi.cpp PROPERTIES LANGUAGE CUDA)
  add_library(cpufree_baselines_mpi OBJECT cpufree/baselines/drivers/mpi.cpp
    cpufree/baselines/nccl_library.cpp)
  cpufree_baseline_options(cpufree_baselines_mpi)
  # Not MPI::MPI_CXX: it may carry flags that nvcc does not know.
  target_include_directories(cpufree_baselines_mpi PRIVATE ${MPI_CXX_INCLUDE_DIRS})
  target_compile_definitions(cpufree_baselines_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  if(CPUFREE_PYTHON)
    # A domain of its own: it has a class of the same C++ type as _baselines.
    nanobind_add_module(_baselines_mpi STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN cpufree_mpi
      cpufree/bindings/baselines/baselines_mpi.cpp)
    target_link_libraries(_baselines_mpi PRIVATE
      cpufree_baselines_mpi cpufree_host CUDA::cusparse CUDA::cublas ${MPI_CXX_LIBRARIES})
    set_target_properties(_baselines_mpi PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS _baselines_mpi LIBRARY DESTINATION cpufree OPTIONAL)
  endif()
else()
  message(STATUS "MPI: not found, the baselines mpi and nccl_mpi are left out "
                 "(apt install libopenmpi-dev)")
endif()
