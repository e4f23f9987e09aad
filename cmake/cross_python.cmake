# An extension for another processor is compiled with the headers of this machine's CPython. Those of
# one version differ in pyconfig.h alone, which states what the compiler of CPython has found: each size
# in it is held against what this compiler has, for a wrong one would be a wrong answer.
if(CMAKE_CROSSCOMPILING)
  set(asserts "")
  foreach(pair "SHORT=short" "INT=int" "LONG=long" "LONG_LONG=long long" "FLOAT=float" "DOUBLE=double"
    "VOID_P=void*" "SIZE_T=std::size_t" "WCHAR_T=wchar_t" "PID_T=pid_t" "OFF_T=off_t" "TIME_T=time_t"
    "UINTPTR_T=std::uintptr_t" "PTHREAD_T=pthread_t")
    string(REGEX REPLACE "^(.*)=(.*)$" "static_assert(SIZEOF_\\1 == sizeof(\\2));\n" assert "${pair}")
    string(APPEND asserts "${assert}")
  endforeach()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES "${Python_INCLUDE_DIRS}")
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_cxx_source_compiles("
#include <pyconfig.h>
#include <pthread.h>
#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <ctime>
${asserts}
#ifdef WORDS_BIGENDIAN
static_assert(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
#else
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
#endif
" CPUFREE_HEADERS_OF_PYTHON_FIT)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(NOT CPUFREE_HEADERS_OF_PYTHON_FIT)
    message(FATAL_ERROR "The headers of CPython in ${Python_INCLUDE_DIRS} are for a processor with other \
sizes than ${CMAKE_SYSTEM_PROCESSOR} has: name those of a CPython that was built for it (Python_INCLUDE_DIR)")
  endif()
endif()
