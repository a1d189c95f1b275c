#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/fat/codec/code_page.hpp"
#include "sluice/fat/limits.hpp"

namespace sluice::fat {

/// The boot sector to use.
enum class boot_source : std::uint8_t {
    evidence,  ///< the one that the volume agrees with
    first,     ///< the one in the first sector, without evidence; repair updates the backup
    backup,    ///< its backup
};

struct check_options {
    code_page page = code_page::cp437;                // for short names in reports
    std::optional<std::uint32_t> table_copy = {};     // the FAT to use; otherwise the active one
    std::size_t problems_max = limits::problems_max;  // listed
    boot_source boot = boot_source::evidence;
};

}  // namespace sluice::fat
