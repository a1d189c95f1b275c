#pragma once

#include <string>

namespace sluice::cli {

/// The arguments of `sluice config import`.
struct config_import {
    std::string file;
    std::string output;  // empty: standard output
};

/// Converts a configuration of Samba, and reports the parameters without an equivalent on standard
/// error. Prints the reason and leaves with exit_code::failure if the file cannot be read, has no
/// share, or the output cannot be created. Allocates: the texts. Blocks: for the file systems.
void import_configuration(const config_import& how);

}  // namespace sluice::cli
