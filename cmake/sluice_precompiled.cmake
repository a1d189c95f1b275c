# What most sources include, parsed once instead of some hundred times: a third to a half of what they cost to compile.
# Behind it a forgotten include passes. Of the standard library tools/tidy.py finds it; of our own headers the release
# build does, which takes none of them.
set(sluice_precompiled <algorithm> <array> <atomic> <chrono> <coroutine> <expected> <functional> <map> <memory> <mutex>
  <optional> <span> <string> <thread> <unordered_map> <variant> <vector>)
# A test's own code runs once, what it tests is a library: optimising it costs more than it gains.
set(sluice_test_options -O0 -g1)
set(empty_source "${PROJECT_BINARY_DIR}/precompiled.cpp")  # a target that holds a precompiled header needs a source
file(CONFIGURE OUTPUT "${empty_source}" CONTENT "")

# sluice_precompile(TARGET <a.hpp>…): `TARGET` parses these and the common ones ahead.
function(sluice_precompile target)
  target_precompile_headers(${target} PRIVATE ${sluice_precompiled} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # for ccache: the same text makes the same file
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# Three for all to share: position-independent code has its own kind, and so has what is not optimised.
add_library(sluice_precompiled_for_components OBJECT "${empty_source}")
set_target_properties(sluice_precompiled_for_components PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(sluice_precompiled_for_components PRIVATE sluice_options)
sluice_precompile(sluice_precompiled_for_components)
foreach(kind IN ITEMS tests optimized_tests)
  add_library(sluice_precompiled_for_${kind} OBJECT "${empty_source}")
  target_link_libraries(sluice_precompiled_for_${kind} PRIVATE sluice_options GTest::gmock Threads::Threads)
  sluice_precompile(sluice_precompiled_for_${kind} <gtest/gtest.h>)
endforeach()
target_compile_options(sluice_precompiled_for_tests PRIVATE ${sluice_test_options})
set_target_properties(sluice_precompiled_for_tests PROPERTIES SLUICE_UNOPTIMIZED ON)
