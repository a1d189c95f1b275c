#pragma once

#include <optional>

#include "sluice/smb/wire/code_list.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class hash_algorithm : std::uint16_t { sha_512 = 1 };

enum class cipher : std::uint16_t {
    none = 0,  ///< in a response: no common algorithm
    aes_128_ccm = 1,
    aes_128_gcm = 2,
    aes_256_ccm = 3,
    aes_256_gcm = 4,
};

enum class signing_algorithm : std::uint16_t { hmac_sha256 = 0, aes_cmac = 1, aes_gmac = 2 };

enum class compression_algorithm : std::uint16_t {
    none = 0,
    lznt1 = 1,
    lz77 = 2,
    lz77_huffman = 3,
    pattern_v1 = 4,
    lz4 = 5,
};

enum class rdma_transform : std::uint16_t { none = 0, encryption = 1, signing = 2 };

struct preauth_integrity {
    code_list<hash_algorithm> hashes{};
    bytes_view salt{};

    [[nodiscard]] friend bool operator==(const preauth_integrity&,
                                         const preauth_integrity&) noexcept = default;
};

struct compression_capabilities {
    std::uint32_t flags = 0;  ///< 1: chained payloads
    code_list<compression_algorithm> algorithms{};

    [[nodiscard]] friend bool operator==(const compression_capabilities&,
                                         const compression_capabilities&) noexcept = default;
};

/// The negotiate contexts of 3.1.1, [MS-SMB2] 2.2.3.1 and 2.2.4.1, in the same format for both
/// directions: a response contains the chosen algorithm. Kinds without a member are ignored.
struct negotiate_contexts {
    std::optional<preauth_integrity> preauth{};
    std::optional<code_list<cipher>> ciphers{};
    std::optional<compression_capabilities> compression{};
    std::optional<bytes_view> netname{};       ///< UTF-16LE; the server's name
                                               ///< as the client wrote it
    std::optional<std::uint32_t> transport{};  ///< 1: the transport encrypts, so that
                                               ///< SMB need not encrypt
    std::optional<code_list<rdma_transform>> rdma{};
    std::optional<code_list<signing_algorithm>> signing{};
    bool posix = false;  ///< the POSIX extensions of Samba and the Linux client

    [[nodiscard]] friend bool operator==(const negotiate_contexts&,
                                         const negotiate_contexts&) noexcept = default;

    /// Returns the number of contexts.
    [[nodiscard]] std::size_t count() const noexcept;
};

/// The largest number of contexts that is accepted. Ten kinds are known.
inline constexpr std::size_t negotiate_contexts_max = 64;

/// The location of the contexts in a message.
struct negotiate_context_list {
    std::uint32_t offset_bytes = 0;  ///< from the SMB2 header
    std::uint16_t count = 0;
};

/// Decodes `list` of `message`. The caller, which knows the dialect, checks that `preauth` is
/// present for 3.1.1. Errors: `misaligned`, `range_outside_message`, `truncated`, `too_many`,
/// `duplicate` (a kind that may occur once), `bad_value` (an algorithm list without algorithms,
/// except that of compression), `bad_text`. Allocates: nothing.
[[nodiscard]] decoded<negotiate_contexts> decode_negotiate_contexts(const message_view& message,
                                                                    negotiate_context_list list) noexcept;

/// Writes the contexts, aligned, at the writer's position.
void encode(byte_writer& writer, const negotiate_contexts& contexts) noexcept;

}  // namespace sluice::smb::wire
