# Installs headers, libraries and a CMake package: find_package(sluice COMPONENTS io); of the program its manual pages.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(components GLOBAL PROPERTY SLUICE_COMPONENTS)
foreach(component IN LISTS components)
  install(TARGETS sluice_${component} EXPORT sluice-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
set(not_installed PATTERN cli EXCLUDE PATTERN "*_test.hpp" EXCLUDE PATTERN "*_testing.hpp" EXCLUDE)
if(NOT SLUICE_SKIPLIST_RANGE_LOCK)
  list(APPEND not_installed PATTERN skiplist EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sluice" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" ${not_installed})
if(SLUICE_PROGRAM)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
endif()
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/sluice-config.cmake.in" sluice-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
write_basic_package_version_file(sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sluice-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/sluice-config-version.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindUring.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
