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
set(sluice_precompiled_with_asio ${sluice_precompiled_with_io} <sluice/io/asio/io_context_testing.hpp>)
set(sluice_precompiled_with_fat ${sluice_precompiled_with_io} <sluice/fat/check/image_testing.hpp>)
set(sluice_precompiled_with_smb <tests/smb_simulation/clients/compliant_client.hpp> <tests/smb_client/rig.hpp>)
set(sluice_precompiled_with_cli <sluice/cli/command_line.hpp> <sluice/cli/fat/image/image_stack.hpp>
  <sluice/cli/serve/serve_options.hpp> <sluice/cli/smb/remote.hpp> <sluice/smb/server/server.hpp>)

# sluice_precompiled_for_test(RESULT KIND LIBRARY…): the target whose precompiled header a test of KIND (tests,
# optimized_tests) shares that links these libraries. The first such test creates it.
function(sluice_precompiled_for_test result kind)
  set(headers std)
  set(library)
  if("sluice::smb_server" IN_LIST ARGN OR "sluice::smb_client" IN_LIST ARGN)
    set(headers smb)
  elseif("sluice::fat" IN_LIST ARGN)
    set(headers fat)
  elseif("sluice_asio" IN_LIST ARGN)
    set(headers asio)
    set(library sluice_asio)
  elseif(ARGN MATCHES "sluice::(io|vfs|fsmutex)|sluice_conformance_harness")
    set(headers io)
  endif()
  set(target sluice_precompiled_for_${kind}_with_${headers})
  if(NOT TARGET ${target})
    add_library(${target} OBJECT "${empty_source}")
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE sluice_options GTest::gmock Threads::Threads ${library})
    sluice_precompile(${target} <gtest/gtest.h> ${sluice_precompiled_with_${headers}})
    if(kind STREQUAL "tests")
      target_compile_options(${target} PRIVATE ${sluice_test_options})
      set_target_properties(${target} PROPERTIES SLUICE_UNOPTIMIZED ON)
      sluice_compile_precompiled(${target})
    endif()
  endif()
  set(${result} ${target} PARENT_SCOPE)
endfunction()

# sluice_precompile_for_cli(TARGET): for a target with sources of the program. Like the headers of components, those of the
# program are precompiled in the builds of the sanitizers and of the program alone. ASan's build does not optimise these
# sources, because its tests spend their time in the components; the fuzzers call some of them often.
function(sluice_precompile_for_cli target)
  if(SLUICE_SANITIZE MATCHES "address" AND NOT SLUICE_FUZZ)
    if(NOT TARGET sluice_precompiled_for_cli)
      add_library(sluice_precompiled_for_cli OBJECT "${empty_source}")
      target_link_libraries(sluice_precompiled_for_cli PRIVATE sluice_options fmt::fmt sluice::fat sluice::smb_client
        sluice::smb_server)
      target_compile_options(sluice_precompiled_for_cli PRIVATE ${sluice_test_options})
      sluice_precompile(sluice_precompiled_for_cli ${sluice_precompiled_with_cli})
      sluice_compile_precompiled(sluice_precompiled_for_cli)
    endif()
    target_compile_options(${target} PRIVATE ${sluice_test_options})
    sluice_reuse_precompiled(${target} sluice_precompiled_for_cli)
  elseif(SLUICE_DEVELOPER AND NOT SLUICE_SANITIZE)
    sluice_precompile(${target})
  else()
    sluice_precompile(${target} ${sluice_precompiled_with_cli})
  endif()
endfunction()

# sluice_reuse_precompiled(TARGET PRECOMPILED): `TARGET` shares the precompiled header of `PRECOMPILED`.
function(sluice_reuse_precompiled target precompiled)
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
  if(TARGET ${precompiled}_code)
    target_link_libraries(${target} PUBLIC ${precompiled}_code)
  endif()
endfunction()

# sluice_compile_precompiled(TARGET): compiles the functions of the headers that TARGET precompiles once, to the library
# TARGET_code. Otherwise, each source compiles those that it uses. It pays in the builds of the sanitizers, for sources that
# are not optimised: a quarter of the compile time of ASan's tests. The release build has too few such sources for each
# header. With optimisation, each source compiles these functions in any case, to inline them.
# The headers have functions that refer to libraries that a program does not link, so the linker has to remove unused
# functions before it looks for undefined symbols, as lld does.
function(sluice_compile_precompiled target)
  if(NOT SLUICE_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT sluice_has_lld)
    return()
  endif()
  target_compile_options(${target} PRIVATE -fpch-codegen)
  # A copy, because CMake does not let a target have a file as its source that another target precompiles.
  set(copy "${CMAKE_CURRENT_BINARY_DIR}/${target}.pch")
  set(precompiled "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch")
  add_custom_command(OUTPUT "${copy}" DEPENDS "${precompiled}"
    COMMAND "${CMAKE_COMMAND}" -E copy "${precompiled}" "${copy}")
  set_source_files_properties("${copy}" PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;none")  # the type is in its name
  add_library(${target}_code STATIC "${copy}")
  target_link_libraries(${target}_code PRIVATE sluice_options)
  target_link_options(${target}_code INTERFACE -fuse-ld=lld LINKER:--gc-sections)
  target_compile_options(${target}_code PRIVATE ${sluice_test_options} -ffunction-sections -fdata-sections
    -Wno-unused-command-line-argument)
  # ccache does not support such a source, and tools that read compile_commands.json cannot parse it.
  set_target_properties(${target}_code PROPERTIES CXX_COMPILER_LAUNCHER "" EXPORT_COMPILE_COMMANDS OFF)
endfunction()
