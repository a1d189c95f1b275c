#include "sluice/smb/wire/create/create_context_data.hpp"

namespace sluice::smb::wire {
namespace {

namespace names = context_names;

struct raw_maximal_access {
    le32 status;  // 0
    le32 access;  // 4
};
static_assert(sizeof(raw_maximal_access) == 8 and wire_type<raw_maximal_access>);

struct raw_on_disk_id {
    le64 file;                           //  0
    le64 volume;                         //  8
    std::array<std::byte, 16> reserved;  // 16
};
static_assert(sizeof(raw_on_disk_id) == 32 and wire_type<raw_on_disk_id>);

struct raw_durable_answer_v2 {
    le32 timeout_ms;  // 0
    le32 flags;       // 4
};
static_assert(sizeof(raw_durable_answer_v2) == 8 and wire_type<raw_durable_answer_v2>);

struct raw_aapl_answer {
    le32 command;   // 0  1: server query
    le32 reserved;  // 4
    le64 fields;    // 8  the fields that follow, in the order of the bits
};
static_assert(sizeof(raw_aapl_answer) == 16 and wire_type<raw_aapl_answer>);

struct raw_aapl_model {
    le32 padding;  // 0
    le32 length;   // 4
};
static_assert(sizeof(raw_aapl_model) == 8 and wire_type<raw_aapl_model>);

constexpr std::uint32_t aapl_command_query = 1;
constexpr std::size_t durable_reserved_bytes = 8;

decoded<maximal_access_answer> decode_maximal_access(bytes_view data) noexcept {
    const auto raw = whole<raw_maximal_access>(data);
    if (!raw) return std::unexpected(raw.error());
    return maximal_access_answer{.status = nt_status(raw->status.value()),
                                 .access = access_mask(raw->access.value())};
}

decoded<on_disk_id> decode_on_disk_id(bytes_view data) noexcept {
    const auto raw = whole<raw_on_disk_id>(data);
    if (!raw) return std::unexpected(raw.error());
    return on_disk_id{.file = raw->file.value(), .volume = raw->volume.value()};
}

decoded<durable_answer_v2> decode_durable_v2(bytes_view data) noexcept {
    const auto raw = whole<raw_durable_answer_v2>(data);
    if (!raw) return std::unexpected(raw.error());
    return durable_answer_v2{.timeout_ms = raw->timeout_ms.value(),
                             .flags = durable_flags(raw->flags.value())};
}

decoded<aapl_answer> decode_aapl(bytes_view data) noexcept {
    byte_reader reader(data);
    const auto raw = reader.take<raw_aapl_answer>();
    if (!raw) return std::unexpected(decode_error::truncated);
    aapl_answer answer;
    if (raw->command.value() != aapl_command_query) return answer;
    const auto fields = aapl_fields(raw->fields.value());
    if (has(fields, aapl_fields::server_capabilities)) {
        const auto bits = reader.take<le64>();
        if (!bits) return std::unexpected(decode_error::truncated);
        answer.server = aapl_capabilities(bits->value());
    }
    if (has(fields, aapl_fields::volume_capabilities)) {
        const auto bits = reader.take<le64>();
        if (!bits) return std::unexpected(decode_error::truncated);
        answer.volume = aapl_volume_capabilities(bits->value());
    }
    if (has(fields, aapl_fields::model)) {
        const auto model = reader.take<raw_aapl_model>();
        if (!model) return std::unexpected(decode_error::truncated);
        const auto text = reader.take_bytes(model->length.value());
        if (!text) return std::unexpected(decode_error::truncated);
        if (text->size() > aapl_model_bytes_max) return std::unexpected(decode_error::too_long);
        if (text->size() % 2 != 0) return std::unexpected(decode_error::bad_text);
        answer.model = *text;
    }
    return answer;
}

std::optional<decode_error> store(create_reply_contexts& contexts, const create_context& context) noexcept {
    const bytes_view data = context.data;
    if (is_named(context, names::durable)) return set_once(contexts.durable, data, durable_reserved_bytes);
    if (is_named(context, names::maximal_access)) {
        return store_once(contexts.maximal_access, decode_maximal_access(data));
    }
    if (is_named(context, names::on_disk_id)) return store_once(contexts.on_disk_id, decode_on_disk_id(data));
    if (is_named(context, names::lease)) return store_once(contexts.lease, decode_lease(data));
    if (is_named(context, names::durable_v2)) return store_once(contexts.durable_v2, decode_durable_v2(data));
    if (is_named(context, names::aapl)) return store_once(contexts.aapl, decode_aapl(data));
    if (is_named(context, names::posix)) return store_once(contexts.posix, decoded<bytes_view>(data));
    return std::nullopt;
}

/// Writes an AAPL answer. Its data are assembled here, because the part after their head varies: at
/// most the model's text.
void put_aapl(named_context_writer& list, const aapl_answer& answer) noexcept {
    std::array<std::byte, aapl_model_bytes_max + 64> room;
    byte_writer data{mutable_bytes(room)};
    aapl_fields fields = aapl_fields::none;
    if (answer.server) fields |= aapl_fields::server_capabilities;
    if (answer.volume) fields |= aapl_fields::volume_capabilities;
    if (answer.model) fields |= aapl_fields::model;
    data.put(raw_aapl_answer{
        .command = le32(aapl_command_query), .reserved = {}, .fields = le64(bits_of(fields))});
    if (answer.server) data.put(le64(bits_of(*answer.server)));
    if (answer.volume) data.put(le64(bits_of(*answer.volume)));
    if (answer.model) {
        data.put(raw_aapl_model{.padding = {}, .length = narrow<le32>(answer.model->size())});
        data.put_bytes(*answer.model);
    }
    const auto written = data.finish();
    ENSURE(written.has_value(), "a model name longer than aapl_model_bytes_max");
    list.put(names::aapl, *written);
}

}  // namespace

decoded<create_reply_contexts> decode_create_reply_contexts(bytes_view list) noexcept {
    create_reply_contexts contexts;
    for (create_context_reader reader(list); !reader.done();) {
        const auto context = reader.next();
        if (!context) return std::unexpected(context.error());
        if (const auto failure = store(contexts, *context)) return std::unexpected(*failure);
    }
    return contexts;
}

std::size_t encode(byte_writer& writer, const create_reply_contexts& contexts) noexcept {
    named_context_writer list(writer);
    constexpr std::array<std::byte, durable_reserved_bytes> reserved{};
    if (contexts.durable) list.put_raw(names::durable, reserved);
    if (const auto& answer = contexts.maximal_access) {
        list.put_raw(names::maximal_access,
                     raw_maximal_access{.status = le32(static_cast<std::uint32_t>(answer->status)),
                                        .access = le32(bits_of(answer->access))});
    }
    if (const auto& id = contexts.on_disk_id) {
        list.put_raw(names::on_disk_id,
                     raw_on_disk_id{.file = le64(id->file), .volume = le64(id->volume), .reserved = {}});
    }
    if (contexts.lease) list.put_lease(*contexts.lease);
    if (const auto& v2 = contexts.durable_v2) {
        list.put_raw(names::durable_v2, raw_durable_answer_v2{.timeout_ms = le32(v2->timeout_ms),
                                                              .flags = le32(bits_of(v2->flags))});
    }
    if (contexts.aapl) put_aapl(list, *contexts.aapl);
    if (contexts.posix) list.put(names::posix, *contexts.posix);
    return list.list_bytes();
}

}  // namespace sluice::smb::wire
