#include "sluice/smb/wire/create/create_context_data.hpp"

namespace sluice::smb::wire {
namespace {

namespace names = context_names;

struct raw_durable_request_v2 {
    le32 timeout_ms;   //  0
    le32 flags;        //  4
    le64 reserved;     //  8
    guid create_guid;  // 16
};
static_assert(sizeof(raw_durable_request_v2) == 32 and wire_type<raw_durable_request_v2>);

struct raw_durable_reconnect_v2 {
    file_id file;      //  0
    guid create_guid;  // 16
    le32 flags;        // 32
};
static_assert(sizeof(raw_durable_reconnect_v2) == 36 and wire_type<raw_durable_reconnect_v2>);

struct raw_app_instance_id {
    le16 structure_size;  // 0  always 20
    le16 reserved;        // 2
    guid id;              // 4
};
static_assert(sizeof(raw_app_instance_id) == 20 and wire_type<raw_app_instance_id>);

struct raw_app_instance_version {
    le16 structure_size;  //  0  always 24
    le16 reserved;        //  2
    le32 padding;         //  4
    le64 high;            //  8
    le64 low;             // 16
};
static_assert(sizeof(raw_app_instance_version) == 24 and wire_type<raw_app_instance_version>);

struct raw_aapl_request {
    le32 command;   // 0
    le32 reserved;  // 4
};
struct raw_aapl_query {
    raw_aapl_request head;  //  0
    le64 fields;            //  8
    le64 capabilities;      // 16
};
struct raw_aapl_resolve {
    raw_aapl_request head;  // 0
    le64 file;              // 8
};
static_assert(sizeof(raw_aapl_query) == 24 and sizeof(raw_aapl_resolve) == 16 and wire_type<raw_aapl_query>);
constexpr std::uint32_t aapl_command_query = 1;
constexpr std::uint32_t aapl_command_resolve = 2;

constexpr std::size_t durable_reserved_bytes = 16;

decoded<maximal_access_query> decode_maximal_access(bytes_view data) noexcept {
    if (data.empty()) return maximal_access_query{};
    const auto timestamp = whole<le64>(data);
    if (!timestamp) return std::unexpected(timestamp.error());
    return maximal_access_query{.timestamp = filetime(*timestamp)};
}

decoded<durable_request_v2> decode_durable_v2(bytes_view data) noexcept {
    const auto raw = whole<raw_durable_request_v2>(data);
    if (!raw) return std::unexpected(raw.error());
    return durable_request_v2{.timeout_ms = raw->timeout_ms.value(),
                              .flags = durable_flags(raw->flags.value()),
                              .create_guid = raw->create_guid};
}

decoded<durable_reconnect_v2> decode_reconnect_v2(bytes_view data) noexcept {
    const auto raw = whole<raw_durable_reconnect_v2>(data);
    if (!raw) return std::unexpected(raw.error());
    return durable_reconnect_v2{
        .file = raw->file, .create_guid = raw->create_guid, .flags = durable_flags(raw->flags.value())};
}

decoded<guid> decode_app_instance_id(bytes_view data) noexcept {
    const auto raw = whole<raw_app_instance_id>(data);
    if (!raw) return std::unexpected(raw.error());
    if (raw->structure_size.value() != sizeof(raw_app_instance_id)) {
        return std::unexpected(decode_error::bad_structure_size);
    }
    return raw->id;
}

decoded<app_instance_version> decode_app_instance_version(bytes_view data) noexcept {
    const auto raw = whole<raw_app_instance_version>(data);
    if (!raw) return std::unexpected(raw.error());
    if (raw->structure_size.value() != sizeof(raw_app_instance_version)) {
        return std::unexpected(decode_error::bad_structure_size);
    }
    return app_instance_version{.high = raw->high.value(), .low = raw->low.value()};
}

decoded<aapl_request> decode_aapl(bytes_view data) noexcept {
    const auto head = data.take<raw_aapl_request>();
    if (!head) return std::unexpected(decode_error::truncated);
    aapl_request request;
    if (head->command.value() == aapl_command_query) {
        const auto raw = whole<raw_aapl_query>(data);
        if (!raw) return std::unexpected(raw.error());
        request.query =
            aapl_server_query{.fields = aapl_fields(raw->fields.value()),
                              .client_capabilities = aapl_capabilities(raw->capabilities.value())};
    } else if (head->command.value() == aapl_command_resolve) {
        const auto raw = whole<raw_aapl_resolve>(data);
        if (!raw) return std::unexpected(raw.error());
        request.resolve = aapl_resolve_id{.file = raw->file.value()};
    }
    return request;
}

template <class T, wire_type Raw>
decoded<T> number(bytes_view data) noexcept {
    const auto raw = whole<Raw>(data);
    if (!raw) return std::unexpected(raw.error());
    return T(raw->value());
}

// Two functions, because one would be too long. Each ignores names that it does not know.
std::optional<decode_error> store_handle_context(create_request_contexts& contexts,
                                                 const create_context& context) noexcept {
    const bytes_view data = context.data;
    if (is_named(context, names::durable)) return set_once(contexts.durable, data, durable_reserved_bytes);
    if (is_named(context, names::durable_reconnect)) {
        return store_once(contexts.durable_reconnect, whole<file_id>(data));
    }
    if (is_named(context, names::durable_v2)) return store_once(contexts.durable_v2, decode_durable_v2(data));
    if (is_named(context, names::durable_reconnect_v2)) {
        return store_once(contexts.durable_reconnect_v2, decode_reconnect_v2(data));
    }
    if (is_named(context, names::lease)) return store_once(contexts.lease, decode_lease(data));
    if (is_named(context, names::app_instance_id)) {
        return store_once(contexts.app_instance_id, decode_app_instance_id(data));
    }
    if (is_named(context, names::app_instance_version)) {
        return store_once(contexts.app_instance_version, decode_app_instance_version(data));
    }
    return std::nullopt;
}

std::optional<decode_error> store_file_context(create_request_contexts& contexts,
                                               const create_context& context) noexcept {
    const bytes_view data = context.data;
    if (is_named(context, names::extended_attributes)) {
        return store_once(contexts.extended_attributes, decoded<bytes_view>(data));
    }
    if (is_named(context, names::security_descriptor)) {
        return store_once(contexts.security_descriptor, decoded<bytes_view>(data));
    }
    if (is_named(context, names::allocation_size)) {
        return store_once(contexts.allocation_bytes, number<std::uint64_t, le64>(data));
    }
    if (is_named(context, names::maximal_access)) {
        return store_once(contexts.maximal_access, decode_maximal_access(data));
    }
    if (is_named(context, names::timewarp)) {
        return store_once(contexts.timewarp, number<filetime, le64>(data));
    }
    if (is_named(context, names::on_disk_id)) return set_once(contexts.on_disk_id, data, 0);
    if (is_named(context, names::aapl)) {
        const auto request = decode_aapl(data);
        // An unknown command is ignored, like a context with an unknown name.
        if (request == aapl_request{}) return std::nullopt;
        return store_once(contexts.aapl, request);
    }
    if (is_named(context, names::posix)) {
        return store_once(contexts.posix_mode, number<std::uint32_t, le32>(data));
    }
    return std::nullopt;
}

void put_aapl(named_context_writer& list, const aapl_request& request) noexcept {
    if (request.query) {
        list.put_raw(names::aapl,
                     raw_aapl_query{.head = {.command = le32(aapl_command_query), .reserved = {}},
                                    .fields = le64(bits_of(request.query->fields)),
                                    .capabilities = le64(bits_of(request.query->client_capabilities))});
    } else if (request.resolve) {
        list.put_raw(names::aapl,
                     raw_aapl_resolve{.head = {.command = le32(aapl_command_resolve), .reserved = {}},
                                      .file = le64(request.resolve->file)});
    }
}

void put_handle_contexts(named_context_writer& list, const create_request_contexts& contexts) noexcept {
    constexpr std::array<std::byte, durable_reserved_bytes> reserved{};
    if (contexts.durable) list.put_raw(names::durable, reserved);
    if (contexts.durable_reconnect) list.put_raw(names::durable_reconnect, *contexts.durable_reconnect);
    if (const auto& v2 = contexts.durable_v2) {
        list.put_raw(names::durable_v2, raw_durable_request_v2{.timeout_ms = le32(v2->timeout_ms),
                                                               .flags = le32(bits_of(v2->flags)),
                                                               .reserved = {},
                                                               .create_guid = v2->create_guid});
    }
    if (const auto& v2 = contexts.durable_reconnect_v2) {
        list.put_raw(
            names::durable_reconnect_v2,
            raw_durable_reconnect_v2{
                .file = v2->file, .create_guid = v2->create_guid, .flags = le32(bits_of(v2->flags))});
    }
    if (contexts.lease) list.put_lease(*contexts.lease);
    if (contexts.app_instance_id) {
        list.put_raw(
            names::app_instance_id,
            raw_app_instance_id{.structure_size = le16(20), .reserved = {}, .id = *contexts.app_instance_id});
    }
    if (const auto& version = contexts.app_instance_version) {
        list.put_raw(names::app_instance_version, raw_app_instance_version{.structure_size = le16(24),
                                                                           .reserved = {},
                                                                           .padding = {},
                                                                           .high = le64(version->high),
                                                                           .low = le64(version->low)});
    }
}

}  // namespace

decoded<create_request_contexts> decode_create_request_contexts(bytes_view list) noexcept {
    create_request_contexts contexts;
    for (create_context_reader reader(list); !reader.done();) {
        const auto context = reader.next();
        if (!context) return std::unexpected(context.error());
        if (const auto failure = store_handle_context(contexts, *context)) return std::unexpected(*failure);
        if (const auto failure = store_file_context(contexts, *context)) return std::unexpected(*failure);
    }
    return contexts;
}

std::size_t encode(byte_writer& writer, const create_request_contexts& contexts) noexcept {
    named_context_writer list(writer);
    put_handle_contexts(list, contexts);
    if (contexts.extended_attributes) list.put(names::extended_attributes, *contexts.extended_attributes);
    if (contexts.security_descriptor) list.put(names::security_descriptor, *contexts.security_descriptor);
    if (contexts.allocation_bytes) list.put_raw(names::allocation_size, le64(*contexts.allocation_bytes));
    if (const auto& query = contexts.maximal_access) {
        if (query->timestamp) {
            list.put_raw(names::maximal_access, query->timestamp->wire());
        } else {
            list.put(names::maximal_access, {});
        }
    }
    if (contexts.timewarp) list.put_raw(names::timewarp, contexts.timewarp->wire());
    if (contexts.on_disk_id) list.put(names::on_disk_id, {});
    if (contexts.aapl) put_aapl(list, *contexts.aapl);
    if (contexts.posix_mode) list.put_raw(names::posix, le32(*contexts.posix_mode));
    return list.list_bytes();
}

}  // namespace sluice::smb::wire
