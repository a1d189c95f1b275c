# What most sources include, parsed once instead of some hundred times (a third to a half of what they cost to compile).
# Tests take it everywhere. Components take it in the sanitizers' builds only: the release build goes without, so that a
# source which forgot an include of its own does not pass. Two of them, as position-independent code has its own kind.
set(source "${PROJECT_BINARY_DIR}/precompiled.cpp")  # a target that holds a precompiled header needs a source
file(CONFIGURE OUTPUT "${source}" CONTENT "")
set(headers <algorithm> <array> <atomic> <chrono> <coroutine> <expected> <functional> <map> <memory> <mutex> <optional>
  <span> <string> <thread> <unordered_map> <variant> <vector>)
add_library(sluice_precompiled_for_tests OBJECT "${source}")
add_library(sluice_precompiled_for_components OBJECT "${source}")
set_target_properties(sluice_precompiled_for_components PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_precompile_headers(sluice_precompiled_for_components PRIVATE ${headers})
target_precompile_headers(sluice_precompiled_for_tests PRIVATE ${headers} <gtest/gtest.h>)
target_link_libraries(sluice_precompiled_for_tests PRIVATE sluice_options GTest::gmock Threads::Threads)
target_link_libraries(sluice_precompiled_for_components PRIVATE sluice_options)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # for ccache: the same text makes the same file
  foreach(kind IN ITEMS tests components)
    target_compile_options(sluice_precompiled_for_${kind} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endforeach()
endif()
