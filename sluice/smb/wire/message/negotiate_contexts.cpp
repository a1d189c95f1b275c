#include "sluice/smb/wire/message/negotiate_contexts.hpp"

#include <algorithm>
#include <array>

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::size_t context_alignment = 8;

enum class context_type : std::uint16_t {
    preauth_integrity = 1,
    encryption = 2,
    compression = 3,
    netname = 5,
    transport = 6,
    rdma_transform = 7,
    signing = 8,
    posix = 0x100,
};

/// The GUID of the POSIX extensions, the only data of their context.
constexpr std::array<unsigned char, 16> posix_tag = {0x93, 0xad, 0x25, 0x50, 0x9c, 0xb4, 0x11, 0xe7,
                                                     0xb4, 0x23, 0x83, 0xde, 0x96, 0x8b, 0xcd, 0x7c};

struct raw_context {
    le16 type;         // 0
    le16 data_length;  // 2
    le32 reserved;     // 4
};
static_assert(sizeof(raw_context) == 8 and wire_type<raw_context>);

struct raw_preauth {
    le16 hash_count;   // 0
    le16 salt_length;  // 2
};
static_assert(sizeof(raw_preauth) == 4 and wire_type<raw_preauth>);

struct raw_compression {
    le16 count;    // 0
    le16 padding;  // 2
    le32 flags;    // 4
};
static_assert(sizeof(raw_compression) == 8 and wire_type<raw_compression>);

struct raw_rdma {
    le16 count;      // 0
    le16 reserved1;  // 2
    le32 reserved2;  // 4
};
static_assert(sizeof(raw_rdma) == 8 and wire_type<raw_rdma>);

/// Decodes `count` codes, perhaps none. Errors: `truncated`.
template <class Code>
decoded<code_list<Code>> take_any_codes(byte_reader& data, std::size_t count) noexcept {
    const auto codes = data.take_bytes(count * sizeof(le16));
    if (!codes) return std::unexpected(decode_error::truncated);
    return code_list<Code>(*codes);
}

/// Decodes `count` codes, at least one. Errors: `bad_value`, `truncated`.
template <class Code>
decoded<code_list<Code>> take_codes(byte_reader& data, std::size_t count) noexcept {
    if (count == 0) return std::unexpected(decode_error::bad_value);
    return take_any_codes<Code>(data, count);
}

decoded<preauth_integrity> decode_preauth(byte_reader data) noexcept {
    const auto raw = data.take<raw_preauth>();
    if (!raw) return std::unexpected(decode_error::truncated);
    const auto hashes = take_codes<hash_algorithm>(data, raw->hash_count.value());
    if (!hashes) return std::unexpected(hashes.error());
    const auto salt = data.take_bytes(raw->salt_length.value());
    if (!salt) return std::unexpected(decode_error::truncated);
    return preauth_integrity{.hashes = *hashes, .salt = *salt};
}

/// Decodes a count and codes: encryption and signing.
template <class Code>
decoded<code_list<Code>> decode_codes(byte_reader data) noexcept {
    const auto count = data.take<le16>();
    if (!count) return std::unexpected(decode_error::truncated);
    return take_codes<Code>(data, count->value());
}

decoded<compression_capabilities> decode_compression(byte_reader data) noexcept {
    const auto raw = data.take<raw_compression>();
    if (!raw) return std::unexpected(decode_error::truncated);
    // A peer that has compression switched off may list no algorithm. Only a server that compresses
    // must reject that ([MS-SMB2] 3.3.5.4), and only clients read such a reply (3.2.5.2).
    const auto algorithms = take_any_codes<compression_algorithm>(data, raw->count.value());
    if (!algorithms) return std::unexpected(algorithms.error());
    return compression_capabilities{.flags = raw->flags.value(), .algorithms = *algorithms};
}

decoded<bytes_view> decode_netname(byte_reader data) noexcept {
    if (data.remaining() % 2 != 0) return std::unexpected(decode_error::bad_text);
    return data.rest();
}

decoded<std::uint32_t> decode_transport(byte_reader data) noexcept {
    const auto flags = data.take<le32>();
    if (!flags) return std::unexpected(decode_error::truncated);
    return flags->value();
}

decoded<code_list<rdma_transform>> decode_rdma(byte_reader data) noexcept {
    const auto raw = data.take<raw_rdma>();
    if (!raw) return std::unexpected(decode_error::truncated);
    return take_codes<rdma_transform>(data, raw->count.value());
}

/// Stores `value` in its member, which must be empty.
template <class T>
std::optional<decode_error> store_once(std::optional<T>& member, decoded<T> value) noexcept {
    if (!value) return value.error();
    if (member) return decode_error::duplicate;
    member = *value;
    return std::nullopt;
}

std::optional<decode_error> store(negotiate_contexts& contexts, context_type type,
                                  bytes_view bytes) noexcept {
    const byte_reader data(bytes);
    switch (type) {
        case context_type::preauth_integrity:
            return store_once(contexts.preauth, decode_preauth(data));
        case context_type::encryption:
            return store_once(contexts.ciphers, decode_codes<cipher>(data));
        case context_type::compression:
            return store_once(contexts.compression, decode_compression(data));
        case context_type::netname:
            return store_once(contexts.netname, decode_netname(data));
        case context_type::transport:
            return store_once(contexts.transport, decode_transport(data));
        case context_type::rdma_transform:
            return store_once(contexts.rdma, decode_rdma(data));
        case context_type::signing:
            return store_once(contexts.signing, decode_codes<signing_algorithm>(data));
        case context_type::posix:
            contexts.posix = contexts.posix or bytes == bytes_of(posix_tag);
            return std::nullopt;
    }
    return std::nullopt;
}

/// A writer of consecutive contexts, each of them aligned.
class context_writer {
public:
    explicit context_writer(byte_writer& writer) noexcept : writer_(writer) {}

    void begin(context_type type, std::size_t data_length) noexcept {
        writer_.align_to(context_alignment);
        writer_.put(raw_context{.type = le16(static_cast<std::uint16_t>(type)),
                                .data_length = narrow<le16>(data_length),
                                .reserved = {}});
    }

    template <class Code>
    void put_codes(context_type type, const code_list<Code>& codes) noexcept {
        begin(type, sizeof(le16) + codes.bytes().size());
        writer_.put(narrow<le16>(codes.size()));
        writer_.put_bytes(codes.bytes());
    }

    /// Writes a fixed part and the bytes after it.
    template <wire_type Raw>
    void put(context_type type, const Raw& raw, bytes_view first = {}, bytes_view second = {}) noexcept {
        begin(type, sizeof(Raw) + first.size() + second.size());
        writer_.put(raw);
        writer_.put_bytes(first);
        writer_.put_bytes(second);
    }

private:
    byte_writer& writer_;
};

}  // namespace

std::size_t negotiate_contexts::count() const noexcept {
    const bool present[] = {
        preauth.has_value(),   ciphers.has_value(), compression.has_value(), netname.has_value(),
        transport.has_value(), rdma.has_value(),    signing.has_value(),     posix};
    return static_cast<std::size_t>(std::ranges::count(present, true));
}

decoded<negotiate_contexts> decode_negotiate_contexts(const message_view& message,
                                                      negotiate_context_list list) noexcept {
    negotiate_contexts contexts;
    if (list.count == 0) return contexts;
    if (list.count > negotiate_contexts_max) return std::unexpected(decode_error::too_many);
    if (list.offset_bytes % context_alignment != 0) return std::unexpected(decode_error::misaligned);
    if (list.offset_bytes < header_bytes) return std::unexpected(decode_error::range_outside_message);
    const auto bytes = message.bytes().from(list.offset_bytes);
    if (!bytes) return std::unexpected(decode_error::range_outside_message);

    byte_reader reader(*bytes);
    for (unsigned i = 0; i < list.count; ++i) {
        if (!reader.align_to(context_alignment)) return std::unexpected(decode_error::truncated);
        const auto raw = reader.take<raw_context>();
        if (!raw) return std::unexpected(decode_error::truncated);
        const auto data = reader.take_bytes(raw->data_length.value());
        if (!data) return std::unexpected(decode_error::truncated);
        const auto failure = store(contexts, context_type(raw->type.value()), *data);
        if (failure) return std::unexpected(*failure);
    }
    return contexts;
}

void encode(byte_writer& writer, const negotiate_contexts& contexts) noexcept {
    context_writer to(writer);
    if (const auto& preauth = contexts.preauth) {
        to.put(context_type::preauth_integrity,
               raw_preauth{.hash_count = narrow<le16>(preauth->hashes.size()),
                           .salt_length = narrow<le16>(preauth->salt.size())},
               preauth->hashes.bytes(), preauth->salt);
    }
    if (contexts.ciphers) to.put_codes(context_type::encryption, *contexts.ciphers);
    if (const auto& compression = contexts.compression) {
        to.put(context_type::compression,
               raw_compression{.count = narrow<le16>(compression->algorithms.size()),
                               .padding = {},
                               .flags = le32(compression->flags)},
               compression->algorithms.bytes());
    }
    if (contexts.netname) {
        to.begin(context_type::netname, contexts.netname->size());
        writer.put_bytes(*contexts.netname);
    }
    if (contexts.transport) to.put(context_type::transport, le32(*contexts.transport));
    if (const auto& rdma = contexts.rdma) {
        to.put(context_type::rdma_transform,
               raw_rdma{.count = narrow<le16>(rdma->size()), .reserved1 = {}, .reserved2 = {}},
               rdma->bytes());
    }
    if (contexts.signing) to.put_codes(context_type::signing, *contexts.signing);
    if (contexts.posix) to.put(context_type::posix, posix_tag);
}

}  // namespace sluice::smb::wire
