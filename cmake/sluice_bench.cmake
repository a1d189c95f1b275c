# sluice_bench(read SOURCES read_bench.cpp LINK sluice::io): the benchmark program build/PRESET/bench/read, one per
# question, with the framework of bench/harness/. `make bench` runs every program of that directory.
function(sluice_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(sluice_${name}_bench ${arg_SOURCES})
  set_target_properties(sluice_${name}_bench PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_precompile_headers(sluice_${name}_bench REUSE_FROM sluice_precompiled_for_programs)
  target_link_libraries(sluice_${name}_bench PRIVATE sluice_options sluice_bench_harness ${arg_LINK})
endfunction()
