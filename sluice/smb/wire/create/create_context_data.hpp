#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sluice/smb/wire/create/create_contexts.hpp"
#include "sluice/smb/wire/message/message_body.hpp"

// Names and data of create contexts, for the two files that decode and encode them.

namespace sluice::smb::wire {

namespace context_names {

using namespace std::string_view_literals;

inline constexpr std::string_view extended_attributes = "ExtA"sv;
inline constexpr std::string_view security_descriptor = "SecD"sv;
inline constexpr std::string_view durable = "DHnQ"sv;
inline constexpr std::string_view durable_reconnect = "DHnC"sv;
inline constexpr std::string_view allocation_size = "AlSi"sv;
inline constexpr std::string_view maximal_access = "MxAc"sv;
inline constexpr std::string_view timewarp = "TWrp"sv;
inline constexpr std::string_view on_disk_id = "QFid"sv;
inline constexpr std::string_view lease = "RqLs"sv;
inline constexpr std::string_view durable_v2 = "DH2Q"sv;
inline constexpr std::string_view durable_reconnect_v2 = "DH2C"sv;
inline constexpr std::string_view aapl = "AAPL"sv;
inline constexpr std::string_view app_instance_id =
    "\x45\xbc\xa6\x6a\xef\xa7\xf7\x4a\x90\x08\xfa\x46\x2e\x14\x4d\x74"sv;
inline constexpr std::string_view app_instance_version =
    "\xb9\x82\xd0\xb7\x3b\x56\x07\x4f\xa0\x7b\x52\x4a\x81\x16\xa0\x10"sv;
inline constexpr std::string_view posix =
    "\x93\xad\x25\x50\x9c\xb4\x11\xe7\xb4\x23\x83\xde\x96\x8b\xcd\x7c"sv;
static_assert(app_instance_id.size() == 16 and app_instance_version.size() == 16 and posix.size() == 16);

}  // namespace context_names

struct raw_lease_v1 {
    lease_key key;  //  0
    le32 state;     // 16
    le32 flags;     // 20
    le64 duration;  // 24  reserved
};
static_assert(sizeof(raw_lease_v1) == 32 and wire_type<raw_lease_v1>);

struct raw_lease_v2 {
    raw_lease_v1 v1;       //  0
    lease_key parent_key;  // 32
    le16 epoch;            // 48
    le16 reserved;         // 50
};
static_assert(sizeof(raw_lease_v2) == 52 and wire_type<raw_lease_v2>);

[[nodiscard]] constexpr bool is_named(const create_context& context, std::string_view name) noexcept {
    return context.name == bytes_view(std::as_bytes(std::span(name)));
}

/// Decodes the data as exactly one `Raw`. Errors: `bad_value`.
template <wire_type Raw>
[[nodiscard]] decoded<Raw> whole(bytes_view data) noexcept {
    if (data.size() != sizeof(Raw)) return std::unexpected(decode_error::bad_value);
    return *data.take<Raw>();
}

/// Stores `value` in its member, which must be empty.
template <class T>
[[nodiscard]] std::optional<decode_error> store_once(std::optional<T>& member,
                                                     const decoded<T>& value) noexcept {
    if (!value) return value.error();
    if (member) return decode_error::duplicate;
    member = *value;
    return std::nullopt;
}
/// The same for a context whose presence is its only content. Its data is `reserved_bytes` long.
[[nodiscard]] inline std::optional<decode_error> set_once(bool& member, bytes_view data,
                                                          std::size_t reserved_bytes) noexcept {
    if (data.size() != reserved_bytes) return decode_error::bad_value;
    if (member) return decode_error::duplicate;
    member = true;
    return std::nullopt;
}

/// Decodes a lease. The length selects the version. Errors: `bad_value`.
[[nodiscard]] decoded<lease> decode_lease(bytes_view data) noexcept;

/// Writes contexts of the names above.
class named_context_writer {
public:
    explicit named_context_writer(byte_writer& writer) noexcept : list_(writer) {}

    void put(std::string_view name, bytes_view data) noexcept {
        list_.put({.name = std::as_bytes(std::span(name)), .data = data});
    }
    template <wire_type Raw>
    void put_raw(std::string_view name, const Raw& data) noexcept {
        put(name, bytes_of(data));
    }
    void put_lease(const lease& lease) noexcept;

    [[nodiscard]] std::size_t list_bytes() const noexcept { return list_.list_bytes(); }

private:
    create_context_writer list_;
};

}  // namespace sluice::smb::wire
