#pragma once

namespace sluice::cli {

/// Restricts the lookup of users, groups and hosts to what the program contains. A static program
/// contains the lookup in files and in DNS; the modules that /etc/nsswitch.conf names need the C
/// library that they were built for, and crash the program with another one. Does nothing in other
/// programs.
/// Thread safety: none; call it before the first thread starts. Allocates: the configuration.
void choose_name_services();

}  // namespace sluice::cli
