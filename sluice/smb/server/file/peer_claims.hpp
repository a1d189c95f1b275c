#pragma once

#include <array>
#include <memory>
#include <utility>

#include "sluice/smb/server/file/peer_servers.hpp"
#include "sluice/smb/server/file/share_modes.hpp"

// The combined share modes of the opens of one server, as other servers see them.

namespace sluice::smb::server {

/// The lock bytes that an open shows, and those that no other server may show at the same time.
struct peer_terms {
    share_mode_lock_byte up = share_mode_lock_byte::none;
    share_mode_lock_byte unless = share_mode_lock_byte::none;
};
/// Returns the terms of an open with these rights and this share mode. It is compatible with the
/// opens of other servers exactly if can_coexist() is true for each of them.
[[nodiscard]] peer_terms terms_of(const sharing& open) noexcept;
/// The same for an open of a file, which cannot be opened for removal while streams of it that must
/// stay are open, nor such streams while it is; and the terms that an open of a stream has for its
/// file.
[[nodiscard]] peer_terms terms_of_file(const sharing& file) noexcept;
[[nodiscard]] peer_terms terms_of_stream_at_file(const sharing& stream) noexcept;

class peer_claim;

/// The share-mode lock bytes of one file, each shown for as long as an open of this server has a
/// claim to it. Thread safety: under the mutex of the file.
class share_mode_lock_bytes {
public:
    explicit share_mode_lock_bytes(std::unique_ptr<peer_file> of) noexcept : file_(std::move(of)) {}
    share_mode_lock_bytes(const share_mode_lock_bytes&) = delete;
    share_mode_lock_bytes& operator=(const share_mode_lock_bytes&) = delete;

    /// As peer_file::raise; assigns the claim if there is no conflict, otherwise returns the
    /// conflicting bytes.
    [[nodiscard]] result<share_mode_lock_byte> claim(const peer_terms& terms, peer_claim& into) noexcept;
    [[nodiscard]] peer_file& file() noexcept { return *file_; }

private:
    friend class peer_claim;
    void cancel(share_mode_lock_byte down) noexcept;

    std::unique_ptr<peer_file> file_;
    std::array<std::uint32_t, share_mode_lock_byte_bits> claims_{};  // by bit
};

/// A claim to lock bytes, which are shown until it is destroyed. Empty, or of a
/// share_mode_lock_bytes that outlives it. Move-only.
class peer_claim {
public:
    peer_claim() noexcept = default;
    peer_claim(peer_claim&& other) noexcept : of_(std::exchange(other.of_, nullptr)), held_(other.held_) {}
    peer_claim& operator=(peer_claim&& other) noexcept {
        if (this == &other) return *this;
        cancel();
        of_ = std::exchange(other.of_, nullptr);
        held_ = other.held_;
        return *this;
    }
    ~peer_claim() { cancel(); }

    void cancel() noexcept {
        if (of_ != nullptr) std::exchange(of_, nullptr)->cancel(held_);
    }
    /// Keeps no more than these, which it has (ENSURE).
    void keep(share_mode_lock_byte only) noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    friend class share_mode_lock_bytes;
    peer_claim(share_mode_lock_bytes& of, share_mode_lock_byte held) noexcept : of_(&of), held_(held) {}

    share_mode_lock_bytes* of_ = nullptr;
    share_mode_lock_byte held_ = share_mode_lock_byte::none;
};

/// An exclusive claim: while it exists and converts to true, no other server can open the file.
/// Neither copied nor moved.
class exclusive_claim {
public:
    explicit exclusive_claim(peer_file& of) noexcept : file_(of), had_(of.claim_exclusively()) {}
    exclusive_claim(const exclusive_claim&) = delete;
    exclusive_claim& operator=(const exclusive_claim&) = delete;
    ~exclusive_claim() {
        if (had_) file_.end_exclusive_claim();
    }
    [[nodiscard]] explicit operator bool() const noexcept { return had_.has_value(); }
    [[nodiscard]] bool is_busy() const noexcept {
        return not had_ and had_.error() == std::errc::resource_unavailable_try_again;
    }

private:
    peer_file& file_;
    result<void> had_;
};

}  // namespace sluice::smb::server
