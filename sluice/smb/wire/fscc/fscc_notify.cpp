#include "sluice/smb/wire/fscc/fscc_notify.hpp"

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

struct notify_wire {
    le32 next;         // 0
    le32 action;       // 4
    le32 name_length;  // 8
};
static_assert(sizeof(notify_wire) == 12);

}  // namespace

entry_outcome notify_writer::put(const notify_information& change) noexcept {
    return list_.put([&](byte_writer& writer) -> decoded<void> {
        const auto length = utf16_bytes_of(change.name);
        if (!length) return std::unexpected(length.error());
        writer.put(le32(static_cast<std::uint32_t>(change.action)));
        writer.put(le32(static_cast<std::uint32_t>(*length)));
        if (const auto put = put_utf16(writer, change.name); !put) return std::unexpected(put.error());
        return {};
    });
}

notify_reader::notify_reader(bytes_view list) noexcept : list_(list, sizeof(notify_wire)) {}

decoded<std::optional<received_notify>> notify_reader::next() noexcept {
    return list_.next_as([](byte_reader& reader) -> decoded<received_notify> {
        const auto wire = reader.take<notify_wire>();
        const auto name = reader.take_bytes(wire->name_length.value());
        if (!name) return std::unexpected(decode_error::range_outside_message);
        if (wire->name_length.value() % 2 != 0) return std::unexpected(decode_error::bad_text);
        return received_notify{.action = notify_action(wire->action.value()), .name_utf16 = *name};
    });
}

}  // namespace sluice::smb::wire
