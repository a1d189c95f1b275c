# Declares components, tests and programs, so that each directory's CMakeLists.txt is a list of names.

find_package(Threads REQUIRED)

# all_tests builds the programs of all tests; release_tests and threads_tests build those that the stages `release` and
# `tsan` of tools/run-tests run. sluice_stages() fills them.
if(SLUICE_DEVELOPER)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_custom_target(all_tests)
  add_custom_target(release_tests)
  add_custom_target(threads_tests)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld sluice_has_lld)  # links the tests in a quarter of the time of GNU ld
endif()

# The options of every target. An interface target, so that consumers' own targets do not get them.
function(sluice_common_options)
  add_library(sluice_options INTERFACE)
  target_compile_features(sluice_options INTERFACE cxx_std_23)
  if(SLUICE_DEVELOPER)
    target_compile_options(sluice_options INTERFACE
      -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Werror
      $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety>)
  endif()
  if(SLUICE_SANITIZE)
    target_compile_options(sluice_options INTERFACE
      -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
  endif()
endfunction()

# sluice_component(io SOURCES a.cpp LINK PRIVATE uring): the library sluice::io in this directory. Its dependencies are in
# sluice-components.cmake.
# PRECOMPILE <sluice/io/a.hpp>: headers that most of its sources include, precompiled in the builds of the sanitizers and
# of the program alone.
# INTERNAL a.hpp: headers that only the component's own sources include. They are not installed, and their declarations
# are not part of the ABI.
function(sluice_component name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRECOMPILE;INTERNAL" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT name IN_LIST sluice_components)
    message(FATAL_ERROR "sluice_component(${name}): unknown '${arg_UNPARSED_ARGUMENTS}', or not in sluice-components.cmake")
  endif()
  add_library(sluice_${name} STATIC ${arg_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  if(SLUICE_SHARED AND name IN_LIST sluice_in_shared)
    target_compile_options(sluice_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g>)  # tools/abi reads types from it
  endif()
  set_target_properties(sluice_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(sluice_${name} PUBLIC cxx_std_23)
  target_include_directories(sluice_${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:include>")
  target_link_libraries(sluice_${name} PRIVATE $<BUILD_INTERFACE:sluice_options>)
  if(SLUICE_PRECOMPILE AND arg_PRECOMPILE AND (SLUICE_SANITIZE OR NOT SLUICE_DEVELOPER))
    sluice_precompile(sluice_${name} ${arg_PRECOMPILE})
  elseif(SLUICE_PRECOMPILE)
    target_precompile_headers(sluice_${name} REUSE_FROM sluice_precompiled_for_components)
  endif()
  foreach(dependency IN LISTS sluice_${name}_depends)
    target_link_libraries(sluice_${name} PUBLIC sluice::${dependency})
  endforeach()
  if(arg_LINK)
    target_link_libraries(sluice_${name} ${arg_LINK})
  endif()
  # A program that linked this and sluice::shared would have two of every thread's current multiplexer.
  set_target_properties(sluice_${name} PROPERTIES
    INTERFACE_SLUICE_LINKAGE static COMPATIBLE_INTERFACE_STRING SLUICE_LINKAGE)
  foreach(header IN LISTS arg_INTERNAL)
    if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${header}")
      message(FATAL_ERROR "sluice_component(${name}): INTERNAL names ${header}, which does not exist")
    endif()
  endforeach()
  set_target_properties(sluice_${name} PROPERTIES
    SLUICE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" SLUICE_INTERNAL "${arg_INTERNAL}")
  set_property(GLOBAL APPEND PROPERTY SLUICE_COMPONENTS_BUILT ${name})
endfunction()

# sluice_test(io SOURCES a_test.cpp LINK …): one test program for a component; every case is a ctest test of the
# program (run with --gtest_filter to run one). LABELS threads: has more than one thread, so it runs under TSan too.
# OPTIMIZED: spends so much time in its own code, or in templates, that optimising pays.
# UNSANITIZED: exists only in builds without sanitizers, which have their own allocator and stacks.
# ALSO_UNSANITIZED: tests code that differs in a sanitizer's build, so that it has to run in both.
# WAITS: sleeps or waits for other processes most of the time, so that it shares a CPU with another test.
# COST 30: takes that many seconds, so that it starts before shorter ones.
# LONG: see sluice_stages().
function(sluice_test name)
  cmake_parse_arguments(arg "OPTIMIZED;UNSANITIZED;ALSO_UNSANITIZED;WAITS;LONG" "COST" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT SLUICE_DEVELOPER OR (arg_UNSANITIZED AND SLUICE_SANITIZE))
    return()
  endif()
  add_executable(sluice_${name}_test ${arg_SOURCES})
  sluice_compile_for_tests(sluice_${name}_test "${arg_OPTIMIZED}" "${arg_LINK}")
  target_link_libraries(sluice_${name}_test PRIVATE sluice_options ${arg_LINK} GTest::gmock GTest::gtest_main
    Threads::Threads)
  if(sluice_has_lld)
    target_link_options(sluice_${name}_test PRIVATE -fuse-ld=lld)
  endif()
  add_test(NAME ${name} COMMAND sluice_${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300
    ENVIRONMENT "GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/test-results/${name}.json")  # counted by tools/run-tests
  sluice_schedule(${name} "${arg_WAITS}" "${arg_COST}")
  set(sanitized ON)
  if(arg_OPTIMIZED OR arg_UNSANITIZED OR arg_ALSO_UNSANITIZED)
    set(sanitized OFF)
  endif()
  sluice_stages(${name} "${arg_LONG}" ${sanitized} LABELS ${arg_LABELS} PROGRAMS sluice_${name}_test)
endfunction()

# sluice_testing(smb_server SOURCES compliant_client.cpp LINK …): the library sluice::smb_server_testing for code that
# several test programs share, compiled once. OPTIMIZED: as above.
function(sluice_testing name)
  if(NOT SLUICE_DEVELOPER)
    return()
  endif()
  cmake_parse_arguments(arg "OPTIMIZED" "" "SOURCES;LINK" ${ARGN})
  add_library(sluice_${name}_testing STATIC EXCLUDE_FROM_ALL ${arg_SOURCES})
  add_library(sluice::${name}_testing ALIAS sluice_${name}_testing)
  sluice_compile_for_tests(sluice_${name}_testing "${arg_OPTIMIZED}" "${arg_LINK}")
  target_link_libraries(sluice_${name}_testing PRIVATE sluice_options PUBLIC ${arg_LINK} GTest::gmock Threads::Threads)
endfunction()

# The options and the precompiled header of a target with code of tests.
function(sluice_compile_for_tests target optimized libraries)
  # AddressSanitizer's build checks memory, so it needs no speed. TSan's needs speed, so that threads race. A test of the
  # Asio adapter is an exception: optimising Asio's templates takes ten seconds for each file.
  if((optimized AND NOT SLUICE_SANITIZE MATCHES "address") OR
     (SLUICE_SANITIZE MATCHES "thread" AND NOT "sluice_asio" IN_LIST libraries))
    sluice_precompiled_for_test(precompiled optimized_tests ${libraries})
  else()
    target_compile_options(${target} PRIVATE ${sluice_test_options})
    set_target_properties(${target} PROPERTIES SLUICE_UNOPTIMIZED ON)
    sluice_precompiled_for_test(precompiled tests ${libraries})
  endif()
  sluice_reuse_precompiled(${target} ${precompiled})
endfunction()

# sluice_stages(io "${arg_LONG}" ON LABELS threads PROGRAMS sluice_io_test): sets the labels of a test, by which the test
# presets select it, and lets the stages of tools/run-tests that run it build its programs:
#   unit     the stage `release` leaves it out, because `asan` runs it: it needs neither an optimised build nor one without
#            sanitizers (`sanitized`: C++ programs by default, other tests by the argument SANITIZED)
#   threads  the stage `tsan` runs it
#   long     `release` and `asan` leave it out, and `make test-long` runs it: it takes long, and seldom fails if the shorter
#            tests pass (argument LONG)
function(sluice_stages test long sanitized)
  cmake_parse_arguments(arg "" "" "LABELS;PROGRAMS" ${ARGN})
  set(targets all_tests)
  if(sanitized)
    list(APPEND arg_LABELS unit)
  endif()
  if(long)
    list(APPEND arg_LABELS long)
  elseif(NOT sanitized)
    list(APPEND targets release_tests)
  endif()
  if("threads" IN_LIST arg_LABELS)
    list(APPEND targets threads_tests)
  endif()
  set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}")
  if(arg_PROGRAMS)
    foreach(target IN LISTS targets)
      add_dependencies(${target} ${arg_PROGRAMS})
    endforeach()
  endif()
endfunction()

# Sets `result` to the targets whose programs these arguments of a test name, as $<TARGET_FILE:sluice>.
function(sluice_programs_in result)
  string(REGEX MATCHALL "\\$<TARGET_FILE:[^>]+>" programs "${ARGN}")
  list(TRANSFORM programs REPLACE "\\$<TARGET_FILE:(.+)>" "\\1")
  set(${result} ${programs} PARENT_SCOPE)
endfunction()

# Defines how ctest schedules a test: tools/run-tests offers four places for each CPU. A test takes all four, and
# one that waits takes one. Without a cost, ctest does not know before its first run which tests take long.
function(sluice_schedule test waits cost)
  set(places 4)
  if(waits)
    set(places 1)
  endif()
  set_tests_properties(${test} PROPERTIES PROCESSORS ${places})
  if(cost)
    set_tests_properties(${test} PROPERTIES COST ${cost})
  endif()
endfunction()

# sluice_python_test(cli SCRIPT cli_test.py ARGUMENTS …): a test written in Python, for behaviour that is easier to test
# from outside. The programs that it runs are built before it: $<TARGET_FILE:…> in ARGUMENTS, and the targets PROGRAMS.
# WAITS, COST and LONG as above. SANITIZED: the build of the sanitizers is enough, see sluice_stages().
function(sluice_python_test name)
  if(NOT SLUICE_DEVELOPER)
    return()
  endif()
  cmake_parse_arguments(arg "WAITS;LONG;SANITIZED" "SCRIPT;COST" "ARGUMENTS;PROGRAMS" ${ARGN})
  add_test(NAME ${name} COMMAND Python3::Interpreter -B ${arg_SCRIPT} ${arg_ARGUMENTS}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  sluice_schedule(${name} "${arg_WAITS}" "${arg_COST}")
  sluice_programs_in(programs ${arg_ARGUMENTS})
  sluice_stages(${name} "${arg_LONG}" "${arg_SANITIZED}" PROGRAMS ${programs} ${arg_PROGRAMS})
endfunction()

# sluice_contained_test(interop_x SCRIPT x_test.py ARGUMENTS … SECONDS 120): the same for a test that starts servers and
# clients. It ends after this time with all its processes, and is skipped if it exits with 77 after it has printed the
# missing requirement.
function(sluice_contained_test name)
  if(NOT SLUICE_DEVELOPER)
    return()
  endif()
  cmake_parse_arguments(arg "WAITS;LONG;SANITIZED" "SCRIPT;SECONDS;COST" "ARGUMENTS;PROGRAMS" ${ARGN})
  math(EXPR ctest_seconds "${arg_SECONDS} + 60")  # tools/contained ends the test first
  add_test(NAME ${name}
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/contained ${arg_SECONDS}
      $<TARGET_FILE:Python3::Interpreter> -B ${arg_SCRIPT} ${arg_ARGUMENTS}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${ctest_seconds})
  sluice_schedule(${name} "${arg_WAITS}" "${arg_COST}")
  sluice_programs_in(programs ${arg_ARGUMENTS})
  sluice_stages(${name} "${arg_LONG}" "${arg_SANITIZED}" LABELS interop PROGRAMS ${programs} ${arg_PROGRAMS})
endfunction()
