# The components, dependencies first: the components that each uses, and the packages it needs. Read by the build and by the
# installed package, so that a consumer of one component needs nothing of the others.
set(sluice_components base sync sync_skiplist io fsmutex vfs fat smb_wire smb_auth smb_server smb_client
  shared)

set(sluice_base_depends)
set(sluice_sync_depends base)
set(sluice_sync_skiplist_depends sync)
set(sluice_io_depends base sync)
set(sluice_fsmutex_depends base sync io)
set(sluice_vfs_depends base io)
set(sluice_fat_depends base sync io vfs)
set(sluice_smb_wire_depends base)
set(sluice_smb_auth_depends base smb_wire)
set(sluice_smb_server_depends base sync io vfs smb_wire smb_auth)
set(sluice_smb_client_depends base io vfs smb_wire smb_auth)

# The shared library consists of these; a program that links it needs no other component.
set(sluice_in_shared base sync io fsmutex)

set(sluice_io_packages Threads Uring)
set(sluice_fsmutex_packages Threads)
set(sluice_smb_auth_packages OpenSSL)
set(sluice_shared_packages Threads)

set(sluice_find_OpenSSL 3 COMPONENTS Crypto)
set(sluice_install_Uring liburing-dev)
set(sluice_install_OpenSSL libssl-dev)

# sluice_with_dependencies(<variable> io fat): these components and their dependencies, dependencies first.
function(sluice_with_dependencies result)
  set(wanted ${ARGN})
  set(ordered)
  set(from_last ${sluice_components})
  list(REVERSE from_last)
  foreach(component IN LISTS from_last)
    if(component IN_LIST wanted)
      list(PREPEND ordered ${component})
      list(APPEND wanted ${sluice_${component}_depends})
    endif()
  endforeach()
  set(${result} ${ordered} PARENT_SCOPE)
endfunction()
