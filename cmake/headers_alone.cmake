# Compiles every header alone, so that none leans on what its includers happened to include before it.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/sluice/*.hpp")
list(FILTER headers EXCLUDE REGEX "^sluice/cli/")  # nobody else includes the program's
if(NOT SLUICE_SKIPLIST_RANGE_LOCK)
  list(FILTER headers EXCLUDE REGEX "^sluice/sync/skiplist/")
endif()
if(NOT SLUICE_ASIO_INCLUDE_DIR)
  list(FILTER headers EXCLUDE REGEX "^sluice/io/asio")  # they need Asio
endif()

set(sources)
foreach(header IN LISTS headers)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp")
  # Twice: a missing include guard shows as a redefinition.
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND sources "${source}")
endforeach()
add_library(headers_alone OBJECT ${sources})
target_include_directories(headers_alone PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(headers_alone PRIVATE -O0 -g0)
target_compile_definitions(headers_alone PRIVATE ASIO_STANDALONE)
target_link_libraries(headers_alone PRIVATE sluice_options)
