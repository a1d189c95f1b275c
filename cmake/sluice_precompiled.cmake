# Headers that most sources include, parsed once instead of some hundred times: a third to a half of the compile time.
# With them, a missing include is not an error. tools/tidy.py finds missing includes of the standard library; the release
# build, which precompiles none of our own headers for components and programs, finds the others.
set(sluice_precompiled <algorithm> <array> <atomic> <chrono> <coroutine> <expected> <functional> <map> <memory> <mutex>
  <optional> <span> <string> <thread> <unordered_map> <variant> <vector>)
# A test's own code runs once, and the code under test is in a library: optimising the test costs more than it gains.
set(sluice_test_options -O0 -g1)
set(empty_source "${PROJECT_BINARY_DIR}/precompiled.cpp")  # a target that holds a precompiled header needs a source
file(CONFIGURE OUTPUT "${empty_source}" CONTENT "")

# sluice_precompile(TARGET <a.hpp>…): `TARGET` precompiles these headers and the common ones.
function(sluice_precompile target)
  target_precompile_headers(${target} PRIVATE ${sluice_precompiled} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # for ccache: the same text gives the same file
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# Position-independent code needs a separate precompiled header.
add_library(sluice_precompiled_for_components OBJECT "${empty_source}")
set_target_properties(sluice_precompiled_for_components PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(sluice_precompiled_for_components PRIVATE sluice_options)
sluice_precompile(sluice_precompiled_for_components)
add_library(sluice_precompiled_for_programs OBJECT "${empty_source}")
target_link_libraries(sluice_precompiled_for_programs PRIVATE sluice_options Threads::Threads)
sluice_precompile(sluice_precompiled_for_programs)

# Our headers that most tests of a component include: parsing them takes most of the compile time of a test file that
# is not optimised. A missing include of one of them is not an error, because no test is built without.
set(sluice_precompiled_with_io
  <sluice/io/loop/io_multiplexer.hpp> <sluice/io/file/file_handle.hpp> <sluice/io/stream/pipe_handle.hpp>
  <sluice/io/stream/socket_handle.hpp> <sluice/io/task/sync_wait.hpp> <sluice/io/task/task_group.hpp>)
set(sluice_precompiled_with_fat ${sluice_precompiled_with_io} <sluice/fat/check/image_testing.hpp>)
set(sluice_precompiled_with_smb <tests/smb_simulation/clients/compliant_client.hpp> <tests/smb_client/rig.hpp>)

# sluice_precompiled_for_test(RESULT KIND LIBRARY…): the target whose precompiled header a test of KIND (tests,
# optimized_tests) shares that links these libraries. The first such test creates it.
function(sluice_precompiled_for_test result kind)
  set(headers std)
  if("sluice::smb_server" IN_LIST ARGN OR "sluice::smb_client" IN_LIST ARGN)
    set(headers smb)
  elseif("sluice::fat" IN_LIST ARGN)
    set(headers fat)
  elseif("sluice::io" IN_LIST ARGN)
    set(headers io)
  endif()
  set(target sluice_precompiled_for_${kind}_with_${headers})
  if(NOT TARGET ${target})
    add_library(${target} OBJECT "${empty_source}")
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE sluice_options GTest::gmock Threads::Threads)
    sluice_precompile(${target} <gtest/gtest.h> ${sluice_precompiled_with_${headers}})
    if(kind STREQUAL "tests")
      target_compile_options(${target} PRIVATE ${sluice_test_options})
      set_target_properties(${target} PROPERTIES SLUICE_UNOPTIMIZED ON)
    endif()
  endif()
  set(${result} ${target} PARENT_SCOPE)
endfunction()
