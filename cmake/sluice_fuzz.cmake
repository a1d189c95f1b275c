# sluice_fuzz(smb_read SOURCES smb_read.cpp LINK sluice::smb_wire): the libFuzzer target build/fuzz/fuzz/smb_read.
# Its seeds are fuzz/seeds/smb_read/. `make fuzz` runs every target.
function(sluice_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(sluice_${name}_fuzz ${arg_SOURCES})
  set_target_properties(sluice_${name}_fuzz PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  target_link_libraries(sluice_${name}_fuzz PRIVATE sluice_options ${arg_LINK})
  target_link_options(sluice_${name}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers sluice_${name}_fuzz)
endfunction()

if(SLUICE_FUZZ)
  add_custom_target(fuzzers)
endif()
