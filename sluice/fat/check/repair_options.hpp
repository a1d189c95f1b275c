#pragma once

#include <cstdint>

#include "sluice/fat/check/check_options.hpp"

namespace sluice::fat {

struct repair_options {
    code_page page = code_page::cp437;
    std::uint16_t date = 0x21;  // for the files it creates, in FAT format: 1980-01-01
    std::uint16_t time = 0;
    boot_source boot = boot_source::evidence;
};

}  // namespace sluice::fat
