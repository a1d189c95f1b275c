// Every decoder of [MS-FSCC] structures. The first byte selects one, the rest is its input.
// Everything that a decoder accepts must be equal after encoding and decoding, and the entries of a
// list must be within the input.

#include <cstdint>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"
#include "sluice/smb/wire/fscc/fscc_notify.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"
#include "sluice/smb/wire/fscc/fscc_quota.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

template <auto Decode>
void round_trip(bytes_view input) {
    const auto structure = Decode(input);
    if (!structure) return;
    std::vector<std::byte> room(input.size() + 64);
    byte_writer writer{mutable_bytes(room)};
    (void)encode(writer, *structure);
    const auto bytes = writer.finish();
    ENSURE(bytes.has_value());
    const auto again = Decode(*bytes);
    ENSURE(again.has_value() and *again == *structure);
}

void name_round_trip(bytes_view input) {
    const auto name = decode_name_information(input);
    if (!name) return;
    std::vector<std::byte> room(input.size());
    byte_writer writer{mutable_bytes(room)};
    ENSURE(encode_name_information(writer, *name).has_value() and !writer.overflowed());
    ENSURE(decode_name_information(*writer.finish()) == *name);
}

constexpr std::size_t quotas_max = 64;

bool within(bytes_view part, bytes_view all) {
    return part.data() >= all.data() and part.data() + part.size() <= all.data() + all.size();
}

// Reads to the end, and calls `rewrite` to write each entry to a new list, which must be readable.
template <class Reader, class Check>
void read_all(Reader reader, bytes_view input, Check&& check) {
    std::size_t entries = 0;
    for (;;) {
        const auto entry = reader.next();
        if (!entry) ENSURE(!*reader.next());
        if (!entry or !*entry) return;
        ENSURE(++entries <= input.size());
        check(**entry);
    }
}

void directory_list(bytes_view input, file_information_class form) {
    if (!is_directory_form(form)) return;
    read_all(directory_entry_reader(input, form), input, [&](const received_directory_entry& entry) {
        ENSURE(within(entry.name_utf16, input) and entry.name_utf16.size() % 2 == 0);
        const auto name = utf8_of(entry.name_utf16);
        const auto short_name = utf8_of(entry.short_name_utf16);
        ENSURE(name and short_name);
        std::vector<std::byte> room(input.size());
        directory_entry_writer writer(room, form);
        ENSURE(writer.put({.fields = entry.fields, .name = *name, .short_name = *short_name}) ==
               entry_outcome::written);
        const auto again = directory_entry_reader(writer.bytes(), form).next();
        ENSURE(again and *again and (*again)->fields == entry.fields and
               utf8_of((*again)->name_utf16) == name);
    });
}

void quota_entries(bytes_view input) {
    const auto entries = decode_quotas(input, quotas_max);
    if (!entries) return;
    ENSURE(entries->size() <= quotas_max);
    std::vector<std::byte> room(entries->size() * 128);
    std::size_t count = 0;
    const bytes_view again = encode_quotas(room, *entries, count);
    ENSURE(count == entries->size() and decode_quotas(again, quotas_max) == entries);
}

void quota_query_round_trip(bytes_view input) {
    const auto query = decode_quota_query(input, quotas_max);
    if (!query) return;
    std::vector<std::byte> room(128 * (query->users.size() + 1));
    byte_writer writer{mutable_bytes(room)};
    encode(writer, *query);
    ENSURE(decode_quota_query(*writer.finish(), quotas_max) == query);
}

void lists(bytes_view input, unsigned which) {
    if (which == 0) {
        read_all(stream_list_reader(input), input, [&](const received_stream& stream) {
            ENSURE(within(stream.name_utf16, input) and utf8_of(stream.name_utf16).has_value());
        });
    } else if (which == 1) {
        read_all(ea_list_reader(input), input, [&](const extended_attribute& attribute) {
            std::vector<std::byte> room(input.size());
            ENSURE(ea_list_writer(mutable_bytes(room)).put(attribute) == entry_outcome::written);
        });
    } else if (which == 2) {
        read_all(ea_name_list_reader(input), input, [&](std::string_view name) { ENSURE(!name.empty()); });
    } else if (which == 3) {
        const auto links = hard_link_list_reader::of(input);
        if (!links) return;
        read_all(*links, input, [&](const received_hard_link& link) {
            ENSURE(within(link.name_utf16, input) and utf8_of(link.name_utf16).has_value());
        });
    } else if (which == 5) {
        quota_entries(input);
    } else if (which == 6) {
        quota_query_round_trip(input);
    } else {
        read_all(notify_reader(input), input, [&](const received_notify& change) {
            ENSURE(within(change.name_utf16, input) and utf8_of(change.name_utf16).has_value());
        });
    }
}

using decoder = void (*)(bytes_view);
constexpr decoder structures[] = {
    round_trip<decode_basic_information>,
    round_trip<decode_standard_information>,
    round_trip<decode_network_open_information>,
    round_trip<decode_attribute_tag_information>,
    round_trip<decode_compression_information>,
    round_trip<decode_internal_information>,
    round_trip<decode_ea_information>,
    round_trip<decode_access_information>,
    round_trip<decode_position_information>,
    round_trip<decode_mode_information>,
    round_trip<decode_alignment_information>,
    round_trip<decode_allocation_information>,
    round_trip<decode_end_of_file_information>,
    round_trip<decode_valid_data_length_information>,
    round_trip<decode_disposition_information>,
    round_trip<decode_disposition_information_ex>,
    round_trip<decode_id_information>,
    round_trip<decode_rename_information>,
    round_trip<decode_link_information>,
    round_trip<decode_rename_information_ex>,
    round_trip<decode_all_information>,
    round_trip<decode_pipe_information>,
    round_trip<decode_pipe_local_information>,
    round_trip<decode_fs_volume_information>,
    round_trip<decode_fs_size_information>,
    round_trip<decode_fs_full_size_information>,
    round_trip<decode_fs_device_information>,
    round_trip<decode_fs_attribute_information>,
    round_trip<decode_fs_control_information>,
    round_trip<decode_fs_object_id_information>,
    round_trip<decode_fs_sector_size_information>,
    name_round_trip,
};
constexpr unsigned lists_begin = std::size(structures);  // 32
constexpr unsigned directories_begin = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned which = data[0];
    const bytes_view input(reinterpret_cast<const std::byte*>(data + 1), size - 1);
    if (which < lists_begin) {
        structures[which](input);
    } else if (which < directories_begin) {
        lists(input, (which - lists_begin) % 7);
    } else {
        directory_list(input, file_information_class(which - directories_begin));
    }
    return 0;
}
