#include "sluice/smb/wire/create/create_context_list.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::size_t context_alignment = 8;
constexpr std::size_t name_bytes_min = 4;

struct raw_create_context {
    le32 next;         //  0  from this context to the next, 0 in the last
    le16 name_offset;  //  4  from the start of this context, as is data_offset
    le16 name_length;  //  6
    le16 reserved;     //  8
    le16 data_offset;  // 10
    le32 data_length;  // 12
};
static_assert(sizeof(raw_create_context) == 16 and wire_type<raw_create_context>);
static_assert(offsetof(raw_create_context, name_length) == 6 and
              offsetof(raw_create_context, data_length) == 12);

/// Returns the bytes of the context at the front of `rest`: up to the next context or the end of
/// the list.
decoded<bytes_view> extent_of(bytes_view rest, std::size_t next) noexcept {
    if (next == 0) return rest;
    if (next % context_alignment != 0) return std::unexpected(decode_error::misaligned);
    if (next < sizeof(raw_create_context)) return std::unexpected(decode_error::bad_chain);
    if (next >= rest.size()) return std::unexpected(decode_error::range_outside_message);
    return *rest.first(next);
}

decoded<create_context> name_and_data(bytes_view entry, const raw_create_context& raw) noexcept {
    const std::size_t name_offset = raw.name_offset.value();
    const std::size_t name_length = raw.name_length.value();
    if (name_length < name_bytes_min) return std::unexpected(decode_error::missing);
    const auto name = entry.slice({.offset = name_offset, .length = name_length});
    if (!name or name_offset < sizeof(raw_create_context)) {
        return std::unexpected(decode_error::range_outside_message);
    }
    if (raw.data_length.value() == 0) return create_context{.name = *name, .data = {}};
    const auto data = entry.slice({.offset = raw.data_offset.value(), .length = raw.data_length.value()});
    if (!data or raw.data_offset.value() < name_offset + name_length) {
        return std::unexpected(decode_error::range_outside_message);
    }
    return create_context{.name = *name, .data = *data};
}

}  // namespace

decoded<create_context> create_context_reader::next() noexcept {
    ENSURE(!done_);
    done_ = true;  // unless there is a further context
    if (++taken_ > create_contexts_max) return std::unexpected(decode_error::too_many);
    const auto raw = rest_.take<raw_create_context>();
    if (!raw) return std::unexpected(decode_error::truncated);
    const auto entry = extent_of(rest_, raw->next.value());
    if (!entry) return std::unexpected(entry.error());
    const auto context = name_and_data(*entry, *raw);
    if (!context) return context;
    done_ = raw->next.value() == 0;
    rest_ = *rest_.from(raw->next.value());
    return context;
}

void create_context_writer::put(const create_context& context) noexcept {
    writer_.align_to(context_alignment);
    const std::size_t begin = writer_.position();
    if (next_of_last_) writer_.patch(*next_of_last_, narrow<le32>(begin - last_));
    last_ = begin;
    next_of_last_ = writer_.reserve<le32>();
    const std::size_t name_end = sizeof(raw_create_context) + context.name.size();
    const std::size_t data_offset = (name_end + context_alignment - 1) & ~(context_alignment - 1);
    writer_.put(le16(sizeof(raw_create_context)));
    writer_.put(narrow<le16>(context.name.size()));
    writer_.put(le16());
    writer_.put(context.data.empty() ? le16() : narrow<le16>(data_offset));
    writer_.put(narrow<le32>(context.data.size()));
    writer_.put_bytes(context.name);
    // Windows pads the name even where no data follows.
    writer_.align_to(context_alignment);
    writer_.put_bytes(context.data);
}

}  // namespace sluice::smb::wire
