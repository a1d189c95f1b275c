#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

namespace sluice::smb::wire {

/// The fragments in the data that a client reads from a pipe. A READ may end within a fragment.
/// Thread safety: none of its own. Allocates: at most rpc_fragment_bytes_received_max and one READ.
class rpc_fragments {
public:
    /// Appends the data of a READ.
    void append(bytes_view data);
    /// Returns the next complete fragment, which is valid until the next call; std::nullopt if more
    /// data are needed. Errors: those of checked().
    [[nodiscard]] decoded<std::optional<bytes_view>> next();

private:
    std::vector<std::byte> bytes_;
    std::size_t taken_ = 0;  // bytes of fragments that were returned
};

/// The results of one call, which arrive in fragments.
/// Invariant: at most rpc_results_bytes_max bytes. Thread safety: none of its own. Allocates: them.
class rpc_results {
public:
    explicit rpc_results(std::uint32_t call) noexcept : call_(call) {}

    /// Appends a complete fragment. Returns whether it was the last one. Errors: those of
    /// decode_rpc_response(); `bad_value` for another call, or an empty fragment before the last;
    /// `too_long`.
    [[nodiscard]] decoded<bool> append(bytes_view fragment);
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

private:
    std::uint32_t call_;
    std::vector<std::byte> bytes_;
};

/// A server cannot send results without an end.
inline constexpr std::size_t rpc_results_bytes_max = 16U << 20;

}  // namespace sluice::smb::wire
