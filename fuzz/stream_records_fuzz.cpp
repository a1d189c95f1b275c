// Records and names by which streams are stored: sluice's own in a stream store, and Samba's. An
// accepted record is encoded to the same bytes, but for those that are not used.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/vfs/host/stream/samba_streams.hpp"
#include "sluice/vfs/host/stream/stream_record.hpp"

namespace {

using namespace sluice;

void check_record(bytes_view bytes) {
    const auto record = vfs::decode_stream_record(bytes);
    if (not record) return;
    const auto again = vfs::encode(*record);
    ENSURE(vfs::decode_stream_record(again) == record);
    ENSURE(std::ranges::equal(std::span(again).subspan(4), bytes.span().subspan(4)));
    ENSURE(vfs::stream_id::parse(record->id.text()) == record->id);
}

void check_names(std::string_view text) {
    if (const auto id = vfs::stream_id::parse(text)) ENSURE(id->text() == text);
    if (const auto stream = vfs::samba_stream_of_attribute(text)) {
        ENSURE(not stream->empty());
        const auto from = static_cast<std::size_t>(stream->data() - text.data());
        ENSURE(vfs::samba_extension_of(text, 1).ends_with(text.substr(from)));
    }
    if (const auto stream = vfs::samba_stream_of_depot_file(text)) ENSURE(not stream->empty());
    ENSURE(not vfs::decode_samba_depot_name(text) or text.size() == 32);
}

void check_value(bytes_view value) {
    const auto decoded = vfs::decode_samba_value(value);
    ENSURE(not decoded or decoded->content.size() + 1 == value.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view bytes(std::as_bytes(std::span(data, size)));
    check_record(bytes);
    check_value(bytes);
    check_names({reinterpret_cast<const char*>(data), size});
    return 0;
}
