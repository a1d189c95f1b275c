# The build flags of a hardened Debian package, for our own optimised builds. Consumers that add sluice as a
# subdirectory keep their own choice. tests/hardened_build_test.py checks the program that results.

option(SLUICE_HARDEN "Build with the flags of a hardened Debian package" ${PROJECT_IS_TOP_LEVEL})

# sluice_harden(sluice_options): every target that links this one is compiled and linked with these flags.
# A sanitizer replaces most of them; a debug build has no optimiser, which _FORTIFY_SOURCE needs.
function(sluice_harden options)
  if(NOT SLUICE_HARDEN OR SLUICE_SANITIZE)
    return()
  endif()
  set(is_release "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
  set(flags -fstack-protector-strong -fstack-clash-protection -Wformat -Werror=format-security)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND flags -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
    list(APPEND flags -mbranch-protection=standard)
  endif()
  # Test programs that are not optimised set SLUICE_UNOPTIMIZED: the C library warns of the combination.
  set(is_optimized "$<AND:${is_release},$<NOT:$<BOOL:$<TARGET_PROPERTY:SLUICE_UNOPTIMIZED>>>>")
  # A distribution's compiler may define its own level; two levels are an error under -Werror.
  target_compile_options(${options} INTERFACE "$<${is_release}:${flags};-U_FORTIFY_SOURCE>"
    "$<${is_optimized}:-D_FORTIFY_SOURCE=3>")
  target_link_options(${options} INTERFACE "$<${is_release}:-Wl,-z,relro;-Wl,-z,now>")
endfunction()

# sluice_harden_program(sluice): the program is loaded at a random address. Its components are position-independent.
function(sluice_harden_program target)
  if(NOT SLUICE_HARDEN OR SLUICE_SANITIZE)
    return()
  endif()
  if(SLUICE_STATIC)
    target_link_options(${target} PRIVATE -static-pie)
  else()
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES CXX)
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
