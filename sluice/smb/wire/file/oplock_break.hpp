#pragma once

#include <variant>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/create/lease.hpp"

// OPLOCK_BREAK, [MS-SMB2] 2.2.23 to 2.2.25: the server revokes a client's caching, the client
// acknowledges, the server responds. Oplocks and leases share the command. StructureSize
// distinguishes them.

namespace sluice::smb::wire {

/// The message id of a notification, which is not the response to a request.
inline constexpr std::uint64_t notification_message_id = ~0ULL;

/// Notification, acknowledgement and response of an oplock, which share this format. A notification
/// differs from a response by its message id.
struct oplock_break {
    wire::oplock_level oplock_level = oplock_level::none;
    file_id file{};

    [[nodiscard]] friend bool operator==(const oplock_break&, const oplock_break&) noexcept = default;
};

/// Acknowledgement and response of a lease.
struct lease_break {
    lease_key key{};
    lease_state state = lease_state::none;

    [[nodiscard]] friend bool operator==(const lease_break&, const lease_break&) noexcept = default;
};

enum class lease_break_flags : std::uint32_t { none = 0, acknowledgement_required = 1 };
template <>
inline constexpr bool is_bit_flags<lease_break_flags> = true;

struct lease_break_notification {
    std::uint16_t new_epoch = 0;  ///< zero for version 1 of the lease
    lease_break_flags flags = lease_break_flags::none;
    lease_key key{};
    lease_state current_state = lease_state::none;
    lease_state new_state = lease_state::none;

    [[nodiscard]] friend bool operator==(const lease_break_notification&,
                                         const lease_break_notification&) noexcept = default;
};

/// The message that a client sends: an acknowledgement.
struct oplock_break_args {
    std::variant<oplock_break, lease_break> acknowledged;

    [[nodiscard]] friend bool operator==(const oplock_break_args&,
                                         const oplock_break_args&) noexcept = default;
};

/// The message that a server sends: a notification or a response.
struct oplock_break_reply {
    std::variant<oplock_break, lease_break, lease_break_notification> sent;

    [[nodiscard]] friend bool operator==(const oplock_break_reply&,
                                         const oplock_break_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`. Allocates: nothing.
[[nodiscard]] decoded<oplock_break_args> decode_oplock_break(const message_view& message) noexcept;
[[nodiscard]] decoded<oplock_break_reply> decode_oplock_break_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const oplock_break_args& args) noexcept;
void encode(byte_writer& writer, const oplock_break_reply& reply) noexcept;

}  // namespace sluice::smb::wire
