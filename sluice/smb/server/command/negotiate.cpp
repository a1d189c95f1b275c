#include "sluice/smb/wire/message/negotiate.hpp"

#include <algorithm>
#include <array>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/message/smb1_negotiate.hpp"

namespace sluice::smb::server {

using wire::dialect;
using wire::nt_status;

namespace {

constexpr std::size_t reply_bytes_max = 1024;
constexpr std::size_t salt_bytes = 32;

// The ciphers to choose from, best first. AES-128-GCM is the fastest that is safe; 256 bits for
// clients that accept no less.
constexpr std::array ciphers{wire::cipher::aes_128_gcm, wire::cipher::aes_256_gcm, wire::cipher::aes_128_ccm,
                             wire::cipher::aes_256_ccm};

// The contexts of a 3.1.1 reply and the memory their lists stand in.
struct reply_contexts {
    le16 hash{static_cast<std::uint16_t>(wire::hash_algorithm::sha_512)};
    le16 cipher;
    le16 signing;
    std::array<std::byte, salt_bytes> salt{};
    wire::negotiate_contexts contexts;
};

[[nodiscard]] std::optional<dialect> highest_common(const wire::negotiate_args& args,
                                                    const server_configuration& ours) noexcept {
    std::optional<dialect> best;
    for (std::size_t i = 0; i != args.dialects.size(); ++i) {
        const dialect offered = args.dialects[i];
        const bool is_known = offered == dialect::smb_2_0_2 or offered == dialect::smb_2_1 or
                              offered == dialect::smb_3_0 or offered == dialect::smb_3_0_2 or
                              offered == dialect::smb_3_1_1;
        if (not is_known or offered < ours.dialect_min or offered > ours.dialect_max) continue;
        if (not best or offered > *best) best = offered;
    }
    return best;
}

[[nodiscard]] wire::capabilities capabilities_for(const server_context& host, dialect chosen,
                                                  const wire::negotiate_args& args) noexcept {
    using wire::capabilities;
    const capabilities of_all = host.has_referrals() ? capabilities::dfs : capabilities::none;
    if (chosen == dialect::smb_2_0_2) return of_all;
    capabilities ours = of_all | capabilities::leasing | capabilities::large_mtu;
    const bool is_3_0 = chosen == dialect::smb_3_0 or chosen == dialect::smb_3_0_2;
    // 3.1.1 says it by a context instead.
    if (is_3_0 and wire::has(args.capabilities, capabilities::encryption)) ours |= capabilities::encryption;
    if (chosen >= dialect::smb_3_0) ours |= args.capabilities & capabilities::multi_channel;
    // Other servers of the same files cannot break a client's caching.
    const bool can_lease = host.configuration().has_directory_leases and host.peers() == nullptr;
    if (chosen >= dialect::smb_3_0 and can_lease) ours |= args.capabilities & capabilities::directory_leasing;
    if (chosen >= dialect::smb_3_0 and host.has_persistent_opens())
        ours |= args.capabilities & capabilities::persistent_handles;
    if (chosen >= dialect::smb_3_1_1) ours |= args.capabilities & capabilities::notifications;
    return ours;
}

// Chooses the algorithms of 3.1.1 and writes the contexts that tell them.
[[nodiscard]] nt_status choose_algorithms(connection& with, const wire::negotiate_args& args,
                                          reply_contexts& made) noexcept {
    const wire::negotiate_contexts& offered = args.contexts;
    if (not offered.preauth or offered.preauth->hashes.empty()) return nt_status::invalid_parameter;
    if (not offered.preauth->hashes.contains(wire::hash_algorithm::sha_512))
        return nt_status::smb_no_preauth_integrity_hash_overlap;
    with.host().random().fill(made.salt);
    made.contexts.preauth = wire::preauth_integrity{
        .hashes = wire::code_list<wire::hash_algorithm>(std::span(&made.hash, 1)), .salt = made.salt};
    with.agreed.signing = auth::signing_algorithm::aes_cmac;
    if (offered.ciphers) {
        const auto best =
            std::ranges::find_if(ciphers, [&](wire::cipher one) { return offered.ciphers->contains(one); });
        if (best != ciphers.end()) {
            made.cipher = le16(static_cast<std::uint16_t>(*best));
            with.agreed.cipher = static_cast<auth::cipher_algorithm>(*best);
        }
        made.contexts.ciphers = wire::code_list<wire::cipher>(std::span(&made.cipher, 1));
    }
    if (offered.signing) {
        const auto& allowed = with.host().configuration().signing_algorithms;
        const auto best = std::ranges::find_if(
            allowed, [&](wire::signing_algorithm one) { return offered.signing->contains(one); });
        if (best != allowed.end()) {
            with.agreed.signing = static_cast<auth::signing_algorithm>(*best);
            made.signing = le16(static_cast<std::uint16_t>(*best));
            made.contexts.signing = wire::code_list<wire::signing_algorithm>(std::span(&made.signing, 1));
        }
    }
    if (offered.compression) {
        if (with.host().configuration().compresses) {
            if (offered.compression->algorithms.empty()) return nt_status::invalid_parameter;
            with.agreed.compression = wire::negotiated_compression::choose(*offered.compression);
        }
        // Without an algorithm: refused, in the way that is understood.
        made.contexts.compression = with.agreed.compression.capabilities();
    }
    return nt_status::success;
}

void agree_on(connection& with, dialect chosen, const wire::negotiate_args& args) {
    negotiated& agreed = with.agreed;
    agreed.dialect = chosen;
    agreed.client = args.client_guid;
    agreed.offered_security_mode = args.security_mode;
    agreed.offered_capabilities = args.capabilities;
    agreed.offered_dialects.clear();
    for (std::size_t i = 0; i != args.dialects.size(); ++i)
        agreed.offered_dialects.push_back(args.dialects[i]);
    agreed.capabilities = capabilities_for(with.host(), chosen, args);
    agreed.signing =
        chosen >= dialect::smb_3_0 ? auth::signing_algorithm::aes_cmac : auth::signing_algorithm::hmac_sha256;
    agreed.cipher.reset();
    agreed.compression = {};
    if (wire::has(agreed.capabilities, wire::capabilities::encryption))
        agreed.cipher = auth::cipher_algorithm::aes_128_ccm;
}

[[nodiscard]] wire::negotiate_reply reply_for(connection& with, dialect chosen) noexcept {
    server_context& host = with.host();
    with.agreed.security_mode = wire::security_mode::signing_enabled;
    if (host.configuration().signing == protection::required)
        with.agreed.security_mode |= wire::security_mode::signing_required;
    const bool is_large = wire::has(with.agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    return {.security_mode = with.agreed.security_mode,
            .dialect = chosen,
            .server_guid = host.identity(),
            .capabilities = with.agreed.capabilities,
            .transact_bytes_max = bytes_max,
            .read_bytes_max = bytes_max,
            .write_bytes_max = bytes_max,
            .system_time = wire::filetime_of(host.clock().utc_now()),
            .security_blob = host.security_offer()};
}

}  // namespace

io::task<nt_status> serve_negotiate(request& r) {
    connection& with = r.connection();
    const auto args = wire::decode_negotiate(r.message());
    if (with.agreed.is_done()) {
        with.close("repeated NEGOTIATE");
        co_return nt_status::invalid_parameter;
    }
    const bool is_signed = wire::has(r.header().flags, wire::header_flags::signed_message);
    if (not args or is_signed) co_return nt_status::invalid_parameter;
    const std::optional<dialect> chosen = highest_common(*args, r.host().configuration());
    if (not chosen) co_return nt_status::not_supported;

    reply_contexts made;
    agree_on(with, *chosen, *args);
    if (*chosen == dialect::smb_3_1_1) {
        const nt_status refused = choose_algorithms(with, *args, made);
        if (refused != nt_status::success) {
            with.agreed = {};
            co_return refused;
        }
        with.preauth.add(r.message().bytes());
    }
    ENSURE(with.agreed.is_done() and not with.has_channels(),
           "a dialect is agreed on before there are sessions");
    wire::negotiate_reply reply = reply_for(with, *chosen);
    reply.contexts = made.contexts;
    byte_writer* const body = r.begin_reply(reply_bytes_max);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, reply);
    co_return nt_status::success;
}

// A client that also speaks SMB1 asks in its language first ([MS-SMB2] 3.3.5.3).
void connection::answer_smb1(bytes_view frame) noexcept {
    const auto asked = wire::decode_smb1_negotiate(frame);
    const server_configuration& ours = host_.configuration();
    const bool may_ask_again = asked and asked->smb_2_wildcard and ours.dialect_max > dialect::smb_2_0_2;
    const bool speaks_2_0_2 = asked and asked->smb_2_002 and ours.dialect_min == dialect::smb_2_0_2;
    if (agreed.dialect or not(may_ask_again or speaks_2_0_2) or not credits_.use(0, 1)) {
        close("SMB1 is not supported");
        return;
    }
    const dialect answered = may_ask_again ? dialect::smb_2_wildcard : dialect::smb_2_0_2;
    agreed.dialect = answered;
    if (answered == dialect::smb_2_0_2) agreed.capabilities = capabilities_for(host(), answered, {});
    reply answer(buffers());
    byte_writer* const body = answer.begin(reply_bytes_max);
    if (body == nullptr) return;
    encode(*body, reply_for(*this, answered));
    ENSURE(answer.finish(), "a reply to NEGOTIATE has room for its body");
    wire::header header;
    header.command = wire::command::negotiate;
    header.flags = wire::header_flags::response;
    header.credits = credits_.grant(1, limits::credits_before_session_max);
    send_unsolicited(header, answer, nullptr);
}

}  // namespace sluice::smb::server
