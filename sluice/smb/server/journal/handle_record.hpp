#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// A byte-range lock of a recorded open.
struct recorded_lock {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool is_exclusive = false;

    [[nodiscard]] friend bool operator==(const recorded_lock&, const recorded_lock&) noexcept = default;
};

/// The caching that a recorded open has: a lease, or an oplock as the lease of a single open
/// (file/lease.hpp).
struct recorded_caching {
    enum class kind : std::uint8_t { none, oplock, lease_v1, lease_v2 };

    kind which = kind::none;
    /// During a break, the state that the client was asked to break to.
    wire::lease_state state = wire::lease_state::none;
    std::uint16_t epoch = 0;
    wire::lease_key key{};
    std::optional<wire::lease_key> parent_key{};

    [[nodiscard]] friend bool operator==(const recorded_caching&, const recorded_caching&) noexcept = default;
};

/// The state of a persistent open that the next server process restores, if this one ends without
/// a warning. It owns neither its texts nor its locks, so that recording allocates nothing.
/// Thread safety: a value.
struct handle_record {
    /// The bounds of a record, in bytes of UTF-8 and in locks. An open that needs more cannot be
    /// recorded: see fits().
    static constexpr std::size_t path_bytes_max = 1024;
    static constexpr std::size_t stream_bytes_max = 3 * 255;
    static constexpr std::size_t account_bytes_max = 255;
    static constexpr std::size_t share_bytes_max = 3 * 80;
    static constexpr std::size_t locks_max = 100;
    static constexpr std::size_t sequences = 64;
    static constexpr std::uint8_t no_sequence = 0xff;

    /// FileId.Persistent and FileId.Volatile. Never 0.
    std::uint64_t open_number = 0;
    wire::guid create_guid{};
    wire::guid client_guid{};
    std::optional<wire::guid> app_instance{};
    std::optional<wire::app_instance_version> app_version{};  // only with app_instance

    wire::access_mask granted_access = wire::access_mask::none;
    wire::share_access share_access = wire::share_access::none;
    wire::create_options options = wire::create_options::none;
    wire::create_disposition disposition = wire::create_disposition::open;
    wire::create_action action = wire::create_action::opened;
    wire::file_attributes attributes = wire::file_attributes::none;
    std::chrono::milliseconds timeout{0};  // at most 2^32 - 1
    /// When a restored open ends whose client has not returned, in the time of the steady clock,
    /// which all processes of a boot have in common. 0: it has its whole
    /// `timeout` after the next restoration. Never negative.
    std::chrono::nanoseconds waits_until{0};

    vfs::file_key file{};  // `image` is 0: images have no persistent opens
    recorded_caching caching{};
    bool deletes_on_close = false;   // the open
    bool is_delete_pending = false;  // the file
    /// The client has closed the open. The record is there until the file has been removed.
    bool is_closed = false;

    std::string_view owner{};
    std::string_view domain{};
    std::string_view share{};
    /// Relative to the share, in the form of the server's open. Not empty.
    std::string_view path{};
    /// While a rename is in progress, the second name that the file may have; empty otherwise.
    std::string_view other_path{};
    std::string_view stream{};  // empty: the unnamed one

    /// For each index, the number of the LOCK carried out last, or no_sequence.
    std::array<std::uint8_t, sequences> lock_sequences = [] {
        std::array<std::uint8_t, sequences> none{};
        none.fill(no_sequence);
        return none;
    }();
    std::span<const recorded_lock> locks{};

    /// Returns whether the record is within its bounds and can be stored.
    /// Complexity: linear in the locks and sequences.
    [[nodiscard]] bool fits() const noexcept;

    /// Compares the values, including those of the locks.
    friend bool operator==(const handle_record& a, const handle_record& b) noexcept;
};

/// Writes a record that fits() (ENSURE), at most journal_format::content_bytes_max bytes.
/// Allocates: nothing. Source: docs/formats/handle_journal.md.
void encode(byte_writer& writer, const handle_record& record) noexcept;

/// Returns the record in `content`, or std::nullopt if that is not one encoded record. The result
/// refers to `content` for its texts, and to `locks`, which it replaces. Both outlive it. No input
/// is trusted: an accepted record fits() and is encoded to the same bytes.
/// Allocates: the locks. Complexity: linear.
[[nodiscard]] std::optional<handle_record> decode_handle_record(bytes_view content,
                                                                std::vector<recorded_lock>& locks);

}  // namespace sluice::smb::server
