# The extension cpufree._mpi_messages, by which the communication model measures MPI, where MPI is found;
# with memory of GPUs where CUDA is.
find_package(MPI COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "MPI: not found, its messages are not measured (apt install libopenmpi-dev)")
  return()
endif()
set(messages_memory cpufree/baselines/messages/no_gpu_memory.cpp)
if(CPUFREE_HAS_GPU_ENGINE)
  set(messages_memory cpufree/baselines/messages/gpu_memory.cpp)
endif()
# A domain of its own: what one extension throws, the others do not translate.
nanobind_add_module(_mpi_messages STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN cpufree_mpi_messages
  cpufree/bindings/baselines/mpi_messages.cpp cpufree/baselines/messages/mpi_messages.cpp ${messages_memory})
# Not MPI::MPI_CXX: the bindings of MPI for C++ are not wanted.
target_include_directories(_mpi_messages SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS} "${NB_DIR}/include")
target_compile_definitions(_mpi_messages PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_link_libraries(_mpi_messages PRIVATE cpufree_options ${MPI_CXX_LIBRARIES})
if(CPUFREE_HAS_GPU_ENGINE)
  target_link_libraries(_mpi_messages PRIVATE cpufree_gpu)
endif()
install(TARGETS _mpi_messages LIBRARY DESTINATION cpufree OPTIONAL)
