// The state of a connection, for `sluice status`.

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] const char* name_of(auth::signing_algorithm which) noexcept {
    switch (which) {
        case auth::signing_algorithm::hmac_sha256:
            return "HMAC-SHA256";
        case auth::signing_algorithm::aes_cmac:
            return "AES-CMAC";
        case auth::signing_algorithm::aes_gmac:
            return "AES-GMAC";
    }
    return "";
}

[[nodiscard]] const char* name_of(const std::optional<auth::cipher_algorithm>& which) noexcept {
    if (not which) return "";
    switch (*which) {
        case auth::cipher_algorithm::aes_128_ccm:
            return "AES-128-CCM";
        case auth::cipher_algorithm::aes_128_gcm:
            return "AES-128-GCM";
        case auth::cipher_algorithm::aes_256_ccm:
            return "AES-256-CCM";
        case auth::cipher_algorithm::aes_256_gcm:
            return "AES-256-GCM";
    }
    return "";
}

}  // namespace

channel_status connection::status() const {
    // acquire: the parameters; pairs with publish_agreed().
    const bool has_agreed = has_agreed_.load(std::memory_order_acquire);
    return {.peer = peer_text_,
            .dialect = std::string(has_agreed ? agreed.dialect_name() : std::string_view()),
            .signing = has_agreed ? name_of(agreed.signing) : "",
            .cipher = has_agreed ? name_of(agreed.cipher) : "",
            .loop = home_.number,
            .credits = credits_.outstanding(),
            .pending_requests = pending_count_.value(),
            .unsent_bytes = writer_.unsent_bytes(),
            .traffic = counters.now()};
}

void connection::add_to(limits_in_use& sum) const noexcept {
    sum.merge({.credits_of_connection = credits_.outstanding(),
               .pending_requests_of_connection = pending_count_.value(),
               .unsent_bytes_of_connection = writer_.unsent_bytes(),
               .buffer_bytes_of_connection = buffer_use_.bytes(),
               .sessions_of_connection = channel_count_.value()});
}

}  // namespace sluice::smb::server
