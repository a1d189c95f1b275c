# Installs headers, libraries, a CMake package for find_package(sluice COMPONENTS io), and the manual pages.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
get_property(sluice_built GLOBAL PROPERTY SLUICE_COMPONENTS_BUILT)
foreach(component IN LISTS sluice_built)
  # A separate export for each: a common one would need the packages of all components.
  install(TARGETS sluice_${component} EXPORT sluice-${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT sluice-${component} NAMESPACE sluice:: FILE sluice-${component}-targets.cmake
    DESTINATION ${package_directory})
  get_property(directory TARGET sluice_${component} PROPERTY SLUICE_DIRECTORY)
  get_property(internal TARGET sluice_${component} PROPERTY SLUICE_INTERNAL)
  file(RELATIVE_PATH below_root "${PROJECT_SOURCE_DIR}" "${directory}")
  set(not_installed PATTERN "*_test.hpp" EXCLUDE PATTERN "*_testing.hpp" EXCLUDE)
  foreach(header IN LISTS internal)
    list(APPEND not_installed PATTERN "${header}" EXCLUDE)
  endforeach()
  if(component STREQUAL "sync")
    list(APPEND not_installed PATTERN skiplist EXCLUDE)  # a separate component in a subdirectory
  endif()
  install(DIRECTORY "${directory}/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${below_root} COMPONENT headers
    FILES_MATCHING PATTERN "*.hpp" ${not_installed})
endforeach()
if(SLUICE_SHARED)
  install(TARGETS sluice_shared EXPORT sluice-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT sluice-shared NAMESPACE sluice:: FILE sluice-shared-targets.cmake DESTINATION ${package_directory})
  list(APPEND sluice_built shared)
endif()
if(SLUICE_PROGRAM)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  set(SLUICE_ZSH_DIRECTORY "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" CACHE STRING "Directory of the completion for zsh")
  set(completion "${PROJECT_SOURCE_DIR}/sluice/cli/completion/sluice")
  install(FILES ${completion}.bash RENAME sluice DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completion}.zsh RENAME _sluice DESTINATION ${SLUICE_ZSH_DIRECTORY})
  install(FILES ${completion}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/sluice-config.cmake.in" sluice-config.cmake
  INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sluice-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/sluice-config-version.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/sluice-compiler.cmake" "${CMAKE_CURRENT_LIST_DIR}/sluice-components.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindUring.cmake"
  DESTINATION ${package_directory})
