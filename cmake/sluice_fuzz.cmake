# sluice_fuzz(bytes SOURCES bytes_fuzz.cpp LINK sluice::base): the fuzz target with the name of the directory of its
# seeds, fuzz/seeds/bytes/, and a test, fuzz_seeds_bytes, that runs them.
#
# In the preset `fuzz` it is the libFuzzer program build/fuzz/fuzz/bytes, and `make fuzz` fuzzes with all of them
# (tools/run-fuzzers); the instrumentation comes from the preset, for libraries too. In every other preset the same source
# has a plain main (fuzz/run_seeds.cpp), so that `make test` runs all files of the corpus, with sanitizers.
function(sluice_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(sluice_${name}_fuzz ${arg_SOURCES})
  set_target_properties(sluice_${name}_fuzz PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  target_link_libraries(sluice_${name}_fuzz PRIVATE sluice_options ${arg_LINK})
  if(SLUICE_FUZZ)
    target_link_options(sluice_${name}_fuzz PRIVATE -fsanitize=fuzzer)
    set(options -runs=0)
  else()
    target_link_libraries(sluice_${name}_fuzz PRIVATE sluice_run_seeds GTest::gmock Threads::Threads)
    # It runs a few seeds, once. The preset `fuzz`, which precompiles nothing, finds missing includes.
    sluice_compile_for_tests(sluice_${name}_fuzz OFF "${arg_LINK}")
    set(options)
  endif()
  add_dependencies(fuzzers sluice_${name}_fuzz)
  add_test(NAME fuzz_seeds_${name}
    COMMAND sluice_${name}_fuzz ${options} "${PROJECT_SOURCE_DIR}/fuzz/seeds/${name}")
  set_tests_properties(fuzz_seeds_${name} PROPERTIES TIMEOUT 300)
  sluice_schedule(fuzz_seeds_${name} OFF "")
  sluice_stages(fuzz_seeds_${name} OFF ON LABELS fuzz PROGRAMS sluice_${name}_fuzz)
endfunction()

if(SLUICE_DEVELOPER)
  add_custom_target(fuzzers)
endif()
