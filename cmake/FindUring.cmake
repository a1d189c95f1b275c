# Uring::Uring, the library liburing: static if available, so that programs need only the kernel to run.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Uring QUIET liburing)
endif()
find_path(Uring_INCLUDE_DIR liburing.h HINTS ${PC_Uring_INCLUDE_DIRS})
find_library(Uring_LIBRARY NAMES liburing.a uring HINTS ${PC_Uring_LIBRARY_DIRS})
mark_as_advanced(Uring_INCLUDE_DIR Uring_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Uring REQUIRED_VARS Uring_LIBRARY Uring_INCLUDE_DIR
  VERSION_VAR PC_Uring_VERSION
  REASON_FAILURE_MESSAGE "install liburing-dev")
if(Uring_FOUND AND NOT TARGET Uring::Uring)
  add_library(Uring::Uring UNKNOWN IMPORTED)
  set_target_properties(Uring::Uring PROPERTIES
    IMPORTED_LOCATION "${Uring_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Uring_INCLUDE_DIR}")
endif()
