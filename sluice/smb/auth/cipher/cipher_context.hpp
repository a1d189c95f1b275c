#pragma once

#include <memory>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"

struct evp_cipher_ctx_st;  // of OpenSSL, whose headers are not included here

namespace sluice::smb::auth::detail {

struct cipher_context_deleter {
    void operator()(evp_cipher_ctx_st* context) const noexcept;
};

/// A cipher with its key, created once and given a new nonce for every message, because setting up
/// the key costs more than a small message.
using cipher_context = std::unique_ptr<evp_cipher_ctx_st, cipher_context_deleter>;

enum class cipher_direction { encrypt, decrypt };

struct cipher_options {
    const char* name = nullptr;  // OpenSSL's name of the cipher
    cipher_direction direction = cipher_direction::encrypt;
    int nonce_bytes = 0;  // 0: the default of the cipher
    int tag_bytes = 0;    // 0: no tag, or the cipher does not need its length
};

/// Errors: `not_supported` if this OpenSSL lacks the cipher, `not_enough_memory`.
/// Allocates: the context.
[[nodiscard]] result<cipher_context> start_cipher(const cipher_options& options, bytes_view key) noexcept;

/// Begins the next message with `nonce`. Allocates: nothing.
void restart_cipher(const cipher_context& cipher, bytes_view nonce) noexcept;

/// Passes bytes through the cipher into `out`, which is as long as `in`. Without `out` they are
/// only authenticated. Returns false if the cipher detects at this point that a message is not
/// authentic. Allocates: nothing.
[[nodiscard]] bool update_cipher(const cipher_context& cipher, bytes_view in, std::byte* out) noexcept;

}  // namespace sluice::smb::auth::detail
