#include <algorithm>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

[[nodiscard]] bool is_what_was_negotiated(const negotiated& agreed,
                                          const wire::validate_negotiate_request& said) {
    return said.client == agreed.client and
           said.capabilities == wire::bits_of(agreed.offered_capabilities) and
           said.security_mode == wire::bits_of(agreed.offered_security_mode) and
           std::ranges::equal(said.dialects, agreed.offered_dialects, {}, {},
                              [](wire::dialect offered) { return static_cast<std::uint16_t>(offered); });
}

[[nodiscard]] std::optional<wire::network_interface> described(const network_interface& from) noexcept {
    wire::network_interface reported{
        .index = from.index,
        .capability = from.can_spread_receives ? wire::network_interface::rss_capable : 0U,
        .link_speed_bits_per_second = from.bits_per_second,
        .ipv6 = from.address.family() == io::address_family::ip_v6};
    // The kernel's form: the address follows family and port, that of IPv6 also its flow.
    const bytes_view kernels(static_cast<const std::byte*>(from.address.data()), from.address.size());
    const auto address = reported.ipv6 ? kernels.slice({.offset = 8, .length = 16})
                                       : kernels.slice({.offset = 4, .length = 4});
    const bool is_ip = reported.ipv6 or from.address.family() == io::address_family::ip_v4;
    if (not is_ip or not address) return std::nullopt;
    std::ranges::copy(*address, reported.address.begin());
    return reported;
}

}  // namespace

// An attacker on the connection could have weakened NEGOTIATE, which was not signed; this request
// is signed. A client that was deceived, or deceives, gets no reply ([MS-SMB2] 3.3.5.15.12). In
// 3.1.1 NEGOTIATE is protected otherwise.
io::task<nt_status> validate_negotiate(control& c) {
    constexpr std::size_t reply_bytes = 24;
    connection& with = c.r.connection();
    const auto said = wire::decode_validate_negotiate_request(c.args.input);
    if (with.agreed.dialect == wire::dialect::smb_3_1_1 or not said or
        c.args.output_bytes_max < reply_bytes or not is_what_was_negotiated(with.agreed, *said)) {
        with.close("negotiation mismatch: the client may be under a downgrade attack");
        co_return nt_status::access_denied;
    }
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    encode(*output, wire::validate_negotiate_reply{
                        .capabilities = wire::bits_of(with.agreed.capabilities),
                        .server = c.r.host().identity(),
                        .security_mode = wire::bits_of(with.agreed.security_mode),
                        .dialect_revision = static_cast<std::uint16_t>(*with.agreed.dialect)});
    co_return nt_status::success;
}

// In every dialect, because [MS-SMB2] 3.3.5.15.11 names none, although only SMB 3 clients need it.
io::task<nt_status> query_network_interfaces(control& c) {
    constexpr std::size_t bytes_per_interface = 152;
    std::vector<wire::network_interface> reported;
    const auto& interfaces = c.r.host().configuration().interfaces;
    for (const network_interface& one : interfaces ? interfaces() : std::vector<network_interface>())
        if (const auto known = described(one)) reported.push_back(*known);
    const std::size_t bytes = reported.size() * bytes_per_interface;
    if (bytes > c.args.output_bytes_max) co_return nt_status::buffer_too_small;
    byte_writer* const output = c.begin_output(bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    wire::encode_network_interfaces(*output, reported);
    co_return nt_status::success;
}

io::task<nt_status> request_resiliency(control& c) {
    if (not c.r.connection().agreed.is_at_least(wire::dialect::smb_2_1) or c.file->is_pipe() or
        c.file->is_directory() or c.file->is_past())
        co_return nt_status::invalid_device_request;
    const auto asked = wire::decode_resiliency_request(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    const std::chrono::milliseconds timeout(asked->timeout_ms);
    if (timeout > limits::durable_timeout_max) co_return nt_status::invalid_parameter;
    const user_identity& user = c.r.session->user;
    const bool is_changed = c.file->change_durability(*c.r.session, [&](std::optional<durability>& now) {
        if (not now) {
            now.emplace();
            now->owner = user.name;
            now->owner_domain = user.domain;
        }
        now->is_resilient = true;
        now->timeout =
            timeout != timeout.zero() ? timeout : std::chrono::milliseconds(limits::durable_timeout_default);
    });
    co_return is_changed ? nt_status::success : nt_status::file_closed;
}

}  // namespace sluice::smb::server
