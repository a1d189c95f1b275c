// Any bytes as a record of the handle journal, and as the slots of a journal: an accepted record is
// encoded to the same bytes, and a journal of any bytes is opened, returns only such records, and
// can be used.
//
// The input is a record, and also what follows the header of a journal. The checksums of its copies
// are corrected, for otherwise nearly all would be ignored.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sluice/smb/server/journal/crc32c.hpp"
#include "sluice/smb/server/journal/handle_journal.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_memory.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::server;
namespace format = journal_format;

constexpr std::uint32_t slots = 2;

void check_encoded_again(const handle_record& record, bytes_view content) {
    std::vector<std::byte> room(format::content_bytes_max);
    byte_writer writer(room);
    encode(writer, record);
    ENSURE(writer.finish().has_value());
    ENSURE(bytes_view(room.data(), writer.position()) == content);
}

// Corrects the checksum of a copy whose length is possible.
void correct(mutable_bytes copy) {
    auto header = copy.take<format::copy_header>().value();
    const auto content = copy.slice({.offset = sizeof header, .length = header.length.value()});
    if (not content) return;
    constexpr std::size_t checked = offsetof(format::copy_header, checksum);
    header.checksum =
        le32(crc32c({content->data(), content->size()}, crc32c(bytes_of(header).first(checked).value())));
    std::memcpy(copy.data(), &header, sizeof header);
}

void check_journal(bytes_view content) {
    journal_memory memory(format::header_bytes + slots * format::slot_bytes);
    ENSURE(handle_journal::open(memory.storage(), {}).has_value());
    memory.resize(format::header_bytes + slots * format::slot_bytes);
    const mutable_bytes all = memory.bytes();
    const std::size_t used = std::min(content.size(), all.size() - format::header_bytes);
    if (used != 0) std::memcpy(all.data() + format::header_bytes, content.data(), used);
    for (std::size_t at = format::header_bytes; at != all.size(); at += format::copy_bytes)
        correct(*all.slice({.offset = at, .length = format::copy_bytes}));
    const auto opened = handle_journal::open(memory.storage(), {});
    ENSURE(opened.has_value() and (*opened)->origin() == journal_origin::continued);
    {
        auto found = (*opened)->take_recovered();
        ENSURE(found.size() + (*opened)->dropped() <= slots);
        for (auto& each : found) {
            check_encoded_again(each.record, each.content);
            ENSURE(each.slot.store(each.record));
        }
        ENSURE((*opened)->slots_in_use() == found.size());
        (*opened)->begin_service();
    }
    ENSURE((*opened)->slots_in_use() == 0 and (*opened)->reserve().has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view content(std::as_bytes(std::span(data, size)));
    std::vector<recorded_lock> locks;
    if (const auto record = decode_handle_record(content, locks)) check_encoded_again(*record, content);
    check_journal(content);
    return 0;
}
