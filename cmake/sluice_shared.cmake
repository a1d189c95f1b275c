# sluice::shared, libsluice.so: base, sync, io and fsmutex in one library, with an ABI that docs/decisions/0016 describes.
# It consists of the objects of the archives. sluice.map lists the exported symbols; all others are local, so that calls
# within the library are direct. tools/abi generates that list from the installed headers.
find_package(Uring REQUIRED)
add_library(sluice_shared SHARED)
foreach(component IN LISTS sluice_in_shared)
  target_sources(sluice_shared PRIVATE $<TARGET_OBJECTS:sluice_${component}>)
endforeach()
add_library(sluice::shared ALIAS sluice_shared)
set(sluice_abi_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(sluice_shared PROPERTIES
  EXPORT_NAME shared
  OUTPUT_NAME sluice
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/sluice"
  VERSION ${PROJECT_VERSION}
  SOVERSION ${sluice_abi_version}
  LINKER_LANGUAGE CXX
  LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/sluice.map"
  INTERFACE_SLUICE_LINKAGE shared
  COMPATIBLE_INTERFACE_STRING SLUICE_LINKAGE)
target_compile_features(sluice_shared INTERFACE cxx_std_23)
target_include_directories(sluice_shared INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:include>")
target_link_libraries(sluice_shared PRIVATE $<BUILD_INTERFACE:sluice_options> $<BUILD_INTERFACE:Uring::Uring>
  PUBLIC Threads::Threads)
# -z defs: an undefined symbol is an error here. -Bsymbolic-functions: calls of exported functions are direct as well.
target_link_options(sluice_shared PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/sluice.map" LINKER:-z,defs LINKER:-Bsymbolic-functions)
