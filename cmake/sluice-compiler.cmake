# Which compilers can compile sluice, and code that includes its headers (docs/decisions/0001-compiler.md). Read by the
# build and by the installed package, because the compiler's own error would name a line inside a header.

# sluice_compiler_problem(<variable>): why the project's C++ compiler cannot be used, in one sentence; empty if it can.
function(sluice_compiler_problem result)
  set(${result} "" PARENT_SCOPE)
  set(remedy "Use clang 19 or later (cmake -DCMAKE_CXX_COMPILER=clang++-19), or GCC 14 or later.")
  set(version "${CMAKE_CXX_COMPILER_VERSION}")
  set(problem)
  if(NOT CMAKE_CXX_COMPILER_ID)
    set(problem "the project has no C++ compiler: add CXX to the languages of project().")
  elseif(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(problem "sluice runs on Linux only (io_uring, epoll, openat2), not on ${CMAKE_SYSTEM_NAME}.")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    if(version VERSION_LESS 14)
      set(problem "GCC ${version} (${CMAKE_CXX_COMPILER}) miscompiles coroutines: it destroys temporaries of a \
co_await expression twice. ${remedy}")
    endif()
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    if(version VERSION_LESS 19)
      set(problem "clang ${version} (${CMAKE_CXX_COMPILER}) does not implement the concepts that std::expected of \
libstdc++ requires. ${remedy}")
    endif()
  else()
    set(problem "${CMAKE_CXX_COMPILER_ID} ${version} (${CMAKE_CXX_COMPILER}) is not a compiler that sluice is \
built with. ${remedy}")
  endif()
  set(${result} "${problem}" PARENT_SCOPE)
endfunction()

# sluice_library_problem(<variable>): the same for the C++ standard library, found by compiling. Once for each build
# directory.
function(sluice_library_problem result)
  set(${result} "" PARENT_SCOPE)
  include(CheckCXXSourceCompiles)
  set(CMAKE_CXX_STANDARD 23)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_compiles("
    #include <coroutine>
    #include <expected>
    int main() { return std::expected<int, int>(0).value(); }" SLUICE_LIBRARY_HAS_EXPECTED)
  if(NOT SLUICE_LIBRARY_HAS_EXPECTED)
    set(${result} "the C++ standard library of ${CMAKE_CXX_COMPILER} has no std::expected or no coroutines. Install \
libstdc++ 12 or later (package libstdc++-12-dev)." PARENT_SCOPE)
  endif()
endfunction()
