# Triggered operations on GPUs, as an extension of its own: cpufree._triggered_gpu. Its kernels are
# built in.
file(GLOB triggered_gpu_sources CONFIGURE_DEPENDS
  "cpufree/triggered/nics/gpu_*.cpp" "cpufree/triggered/nics/block/*.cpp" "cpufree/triggered/nics/block/*.cu"
  "cpufree/triggered/nics/copy_engine/*.cpp" "cpufree/triggered/nics/proxy/*.cpp"
  "cpufree/triggered/gpu/*.cpp" "cpufree/triggered/gpu/*.cu")
add_library(cpufree_triggered_gpu OBJECT ${triggered_gpu_sources}
  cpufree/baselines/drivers/vectors.cpp)
target_link_libraries(cpufree_triggered_gpu PRIVATE cpufree_options cpufree_gpu)
target_compile_options(cpufree_triggered_gpu PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
    -Xfatbin=-compress-all>)

if(CPUFREE_PYTHON)
  # A domain of its own: what one extension throws, the others do not translate.
  nanobind_add_module(_triggered_gpu STABLE_ABI NB_STATIC NOMINSIZE NB_DOMAIN cpufree_triggered_gpu
    cpufree/bindings/triggered/triggered_gpu.cpp cpufree/baselines/nccl_library.cpp)
  target_link_libraries(_triggered_gpu PRIVATE cpufree_triggered_gpu cpufree_triggered_host cpufree_gpu)
  target_include_directories(_triggered_gpu SYSTEM PRIVATE "${NB_DIR}/include")
  install(TARGETS _triggered_gpu LIBRARY DESTINATION cpufree OPTIONAL)
endif()
