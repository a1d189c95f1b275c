#pragma once

#include <cstdint>

namespace sluice::smb::wire {

/// The information about a file in QUERY_INFO, SET_INFO and QUERY_DIRECTORY, [MS-FSCC] 2.4. A
/// server also receives values without an enumerator and answers them with
/// STATUS_INVALID_INFO_CLASS. It answers `quota`, which no volume here supports, with
/// STATUS_NOT_SUPPORTED.
enum class file_information_class : std::uint8_t {
    directory = 1,
    full_directory = 2,
    both_directory = 3,
    basic = 4,
    standard = 5,
    internal = 6,
    ea = 7,
    access = 8,
    name = 9,
    rename = 10,
    link = 11,
    names = 12,
    disposition = 13,
    position = 14,
    full_ea = 15,
    mode = 16,
    alignment = 17,
    all = 18,
    allocation = 19,
    end_of_file = 20,
    alternate_name = 21,
    stream = 22,
    pipe = 23,
    pipe_local = 24,
    compression = 28,
    quota = 32,
    network_open = 34,
    attribute_tag = 35,
    id_both_directory = 37,
    id_full_directory = 38,
    valid_data_length = 39,
    short_name = 40,
    hard_link = 46,
    normalized_name = 48,
    id = 59,
    id_extd_directory = 60,
    id_extd_both_directory = 63,
    disposition_ex = 64,
    rename_ex = 65,
    link_ex = 72,
    id_64_extd_directory = 78,
    id_64_extd_both_directory = 79,
    id_all_extd_directory = 80,
    id_all_extd_both_directory = 81,
};

/// The information about a volume in QUERY_INFO, [MS-FSCC] 2.5.
enum class filesystem_information_class : std::uint8_t {
    volume = 1,
    label = 2,
    size = 3,
    device = 4,
    attribute = 5,
    control = 6,
    full_size = 7,
    object_id = 8,
    sector_size = 11,
};

}  // namespace sluice::smb::wire
