#pragma once

#include <memory>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"

struct evp_cipher_ctx_st;  // of OpenSSL, whose headers stay out of ours

namespace sluice::smb::auth::detail {

struct cipher_context_deleter {
    void operator()(evp_cipher_ctx_st* context) const noexcept;
};

/// A cipher with its key, made once and given a fresh nonce for every message: setting up the key costs more
/// than a small message.
using cipher_context = std::unique_ptr<evp_cipher_ctx_st, cipher_context_deleter>;

enum class cipher_direction { encrypt, decrypt };

struct cipher_options {
    const char* name = nullptr;  // as OpenSSL calls it
    cipher_direction direction = cipher_direction::encrypt;
    int nonce_bytes = 0;  // 0: as the cipher has it
    int tag_bytes = 0;    // 0: no tag, or the cipher needs not be told
};

/// Errors: `not_supported` if this OpenSSL lacks the cipher, `not_enough_memory`. Allocates: the context.
[[nodiscard]] result<cipher_context> start_cipher(const cipher_options& options, bytes_view key) noexcept;

/// Begins the next message with `nonce`. Allocates: nothing.
void restart_cipher(const cipher_context& cipher, bytes_view nonce) noexcept;

/// Passes bytes through into `out`, which has as much room; with no `out` they are authenticated only.
/// False where the cipher finds out here that a message is not authentic. Allocates: nothing.
[[nodiscard]] bool update_cipher(const cipher_context& cipher, bytes_view in, std::byte* out) noexcept;

}  // namespace sluice::smb::auth::detail
