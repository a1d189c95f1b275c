# Compiles every header alone, so that no header depends on earlier includes of its includers. Most are compiled alone
# already, by the component's source of the same name, if that includes the header first. The others are compiled here.
# The standard library is precompiled; tools/tidy.py checks its includes.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/sluice/*.hpp")
list(FILTER headers EXCLUDE REGEX "^sluice/cli/")  # only the program includes its headers
if(NOT SLUICE_SKIPLIST_RANGE_LOCK)
  list(FILTER headers EXCLUDE REGEX "^sluice/sync/skiplist/")
endif()
if(NOT SLUICE_ASIO_INCLUDE_DIR)
  list(FILTER headers EXCLUDE REGEX "^sluice/io/asio")  # they need Asio
endif()

# Sets `proven` to whether the component's source of the header's name includes it before anything else. Sources of
# the tests (X_testing) are compiled with a precompiled header and prove nothing.
function(is_included_first header proven)
  set(${proven} FALSE PARENT_SCOPE)
  string(REGEX REPLACE "\\.hpp$" ".cpp" source "${PROJECT_SOURCE_DIR}/${header}")
  if(EXISTS "${source}" AND NOT source MATCHES "_testing\\.cpp$")
    file(STRINGS "${source}" first REGEX "^#include" LIMIT_COUNT 1)
    if(first STREQUAL "#include \"${header}\"")
      set(${proven} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(sources)
foreach(header IN LISTS headers)
  is_included_first("${header}" proven)
  if(proven)
    continue()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n")
  list(APPEND sources "${source}")
endforeach()
add_library(headers_alone OBJECT ${sources})
target_include_directories(headers_alone PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(headers_alone PRIVATE -O0 -g0)
set_target_properties(headers_alone PROPERTIES SLUICE_UNOPTIMIZED ON)
target_compile_definitions(headers_alone PRIVATE ASIO_STANDALONE)
target_link_libraries(headers_alone PRIVATE sluice_options)
sluice_precompile(headers_alone)
