# sluice_fuzz(bytes SOURCES bytes_fuzz.cpp LINK sluice::base): the libFuzzer program build/fuzz/fuzz/bytes, named as the
# folder of its seeds fuzz/seeds/bytes/, and a test that these pass. The instrumentation comes from the preset, for
# libraries too. `make fuzz` fuzzes with all of them (tools/run-fuzzers).
function(sluice_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(sluice_${name}_fuzz ${arg_SOURCES})
  set_target_properties(sluice_${name}_fuzz PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  target_link_libraries(sluice_${name}_fuzz PRIVATE sluice_options ${arg_LINK})
  target_link_options(sluice_${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers sluice_${name}_fuzz)
  add_test(NAME fuzz_seeds_${name} COMMAND sluice_${name}_fuzz -runs=0 "${PROJECT_SOURCE_DIR}/fuzz/seeds/${name}")
  set_tests_properties(fuzz_seeds_${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endfunction()

if(SLUICE_FUZZ)
  add_custom_target(fuzzers)
endif()
