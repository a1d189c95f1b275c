#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/compression/lz77.hpp"
#include "sluice/smb/wire/compression/lz77_huffman.hpp"
#include "sluice/smb/wire/compression/lznt1.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/message/negotiate_contexts.hpp"

// Compressed messages, [MS-SMB2] 2.2.42: a header that announces a size, and either a part of the
// message as it is and the rest compressed (unchained), or a chain of elements, of which each has
// its own algorithm. Compression comes after signing and before encryption.

namespace sluice::smb::wire {

/// The flag of compression_capabilities for chained messages.
inline constexpr std::uint32_t compression_chained = 1;

/// The algorithms that two sides agreed on. Thread safety: a value.
class negotiated_compression {
public:
    negotiated_compression() noexcept = default;

    /// Returns the supported algorithms of `offered`, in its order, and chaining if it is offered.
    [[nodiscard]] static negotiated_compression choose(const compression_capabilities& offered) noexcept;

    [[nodiscard]] bool is_on() const noexcept { return count_ != 0; }
    [[nodiscard]] bool is_chained() const noexcept { return is_chained_; }
    /// Returns whether compress_message() can do anything: runs alone need chained messages.
    [[nodiscard]] bool can_compress() const noexcept {
        return is_chained_ or preferred() != compression_algorithm::none;
    }
    [[nodiscard]] bool contains(compression_algorithm algorithm) const noexcept;
    /// Returns the first algorithm that compresses any data, or `none`: only runs are compressed.
    [[nodiscard]] compression_algorithm preferred() const noexcept;
    /// Returns the reply that states this: the list is `none` alone if nothing is supported. Points
    /// into this object.
    [[nodiscard]] compression_capabilities capabilities() const noexcept;

private:
    std::array<le16, 4> codes_{};  // `none` if there are none
    std::size_t count_ = 0;
    bool is_chained_ = false;
};

/// The largest sizes that a receiver accepts, in bytes.
struct compression_limits {
    std::size_t segment_bytes_max = 0;  ///< the part that is compressed
    std::size_t message_bytes_max = 0;  ///< the whole message
};
/// Returns the limits of [MS-SMB2] 3.3.5.2.1.2 for the largest transfer that was negotiated.
[[nodiscard]] constexpr compression_limits compression_limits_for(std::size_t transfer_bytes_max,
                                                                  std::size_t message_bytes_max) noexcept {
    constexpr std::size_t transform_bytes = 16;
    return {.segment_bytes_max = transfer_bytes_max + transform_bytes + 256,
            .message_bytes_max = message_bytes_max};
}

/// Returns the size that the header of an untrusted frame announces for the message, before memory
/// is reserved for it. Errors: `truncated`, `bad_protocol_id`, `bad_value` (unknown flags, chained
/// without agreement), `unsupported` (an algorithm that was not negotiated), `too_long` (more than
/// the limits). Allocates: nothing. Complexity: constant.
[[nodiscard]] decoded<std::size_t> decompressed_bytes(bytes_view frame, const negotiated_compression& agreed,
                                                      const compression_limits& limits) noexcept;

/// Decompresses an untrusted frame into `message`, which has the announced size. Does not examine
/// the message: it may be anything, also another compressed one. Errors: those of
/// decompressed_bytes() and of the algorithms; `bad_chain` (an element that gives nothing, or
/// claims to be the first one and is not). Allocates: nothing. Complexity: linear in both.
///
/// Invariants:
///   1. Writes only `message`, and all of it if it succeeds.
///   2. Each element of a chain takes at least 8 bytes and gives at least one.
[[nodiscard]] decoded<void> decompress_message(bytes_view frame, const negotiated_compression& agreed,
                                               mutable_bytes message) noexcept;

/// The memory of compress_message(), 400 KiB. Thread safety: one thread.
struct compression_work_area {
    static constexpr std::size_t sample_bytes = 4096;
    lznt1::work_area lznt1;
    lz77::work_area lz77;
    lz77_huffman::work_area lz77_huffman;
    std::array<std::byte, sample_bytes> sample;
};

/// A message to compress, in two parts.
struct uncompressed_message {
    bytes_view head;  ///< stays as it is: it is short, or hardly compressible
    bytes_view data;
};

/// Compresses a message into the first bytes of `out` and returns their number, or std::nullopt if
/// they do not fit: the caller makes `out` as large as a result is useful. Gives up early if
/// samples of the data hardly shrink. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::optional<std::size_t> compress_message(const uncompressed_message& message,
                                                          const negotiated_compression& agreed,
                                                          mutable_bytes out,
                                                          compression_work_area& work) noexcept;

}  // namespace sluice::smb::wire
