#include "sluice/smb/client/tree.hpp"

#include <algorithm>
#include <functional>

#include "sluice/smb/client/wire_path.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/message/tree_disconnect.hpp"

namespace sluice::smb::client {

using wire::dialect;
using wire::nt_status;

namespace {

[[nodiscard]] bytes_view view(const std::string& text) noexcept {
    return std::as_bytes(std::span(text));
}

constexpr wire::share_access share_all =
    wire::share_access::read | wire::share_access::write | wire::share_access::remove;

// Returns whether an older server returns this status for the unknown control. That reply is
// signed.
[[nodiscard]] bool knows_no_validation(nt_status status) noexcept {
    return status == nt_status::not_supported or status == nt_status::invalid_device_request or
           status == nt_status::file_closed or status == nt_status::invalid_parameter;
}

}  // namespace

io::task<outcome<not_null_ptr<tree>>> tree::connect(session& in, std::string_view share) noexcept {
    return connect_to(in, std::string(share), wire::share_type::disk);
}

io::task<outcome<not_null_ptr<tree>>> tree::connect_to_pipes(session& in) noexcept {
    return connect_to(in, "IPC$", wire::share_type::pipe);
}

io::task<outcome<not_null_ptr<tree>>> tree::connect_to(session& in, std::string share,
                                                       wire::share_type wanted) noexcept {
    constexpr const char* step = "connect to the share";
    connection& over = in.first();
    const auto path = wire_path_of("\\\\" + over.options().server_name + "\\" + share, step);
    if (not path) co_return failed(path.error());
    std::unique_ptr<tree> fresh(new tree(in));
    // Here the leading separators are part of the name.
    const std::string full = std::string("\\\0\\\0", 4) + *path;
    io::task<outcome<reply>> asking = over.call(
        wire::command::tree_connect, wire::tree_connect_args{.path = view(full)},
        {.step = step, .must_sign = true, .room_bytes = static_cast<std::uint32_t>(full.size() + 64)});
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto said = wire::decode_tree_connect_reply(*wire::message_view::of(answered->message));
    if (not said) co_return failed(client_error::of_protocol(step, "invalid TREE_CONNECT reply"));
    fresh->id_ = answered->header.tree_id;
    fresh->share_ = *said;
    fresh->seals_ = wire::has(said->flags, wire::share_flags::encrypt_data);
    if (said->type != wanted) {
        io::task<void> leaving = fresh->disconnect();
        co_await std::move(leaving);
        co_return failed(client_error::of_policy(step, wanted == wire::share_type::disk
                                                           ? "the share does not contain files"
                                                           : "the share does not contain pipes"));
    }
    if (fresh->seals_ and not over.security().sealer)
        co_return failed(client_error::of_policy(
            step, "the share requires encryption, which this session does not support"));
    const dialect agreed = over.agreed().dialect;
    const bool can_be_tampered_with = agreed < dialect::smb_3_1_1 and
                                      over.options().dialect_max >= dialect::smb_3_0 and
                                      over.security().signer.has_value();
    if (can_be_tampered_with) {
        io::task<outcome<void>> validating = fresh->validate_negotiation();
        const outcome<void> valid = co_await std::move(validating);
        if (not valid) {
            over.break_soon(valid.error());
            co_return failed(valid.error());
        }
    }
    co_return not_null_ptr(std::move(fresh));
}

// Repeats the parameters of NEGOTIATE, signed ([MS-SMB2] 3.2.5.5). In 3.1.1 the keys depend on
// them.
io::task<outcome<void>> tree::validate_negotiation() noexcept {
    constexpr const char* step = "validate the negotiation";
    connection& over = session_.first();
    const agreement& agreed = over.agreed();
    wire::validate_negotiate_request claim{
        .capabilities = static_cast<std::uint32_t>(agreed.offered_capabilities),
        .client = agreed.client_guid,
        .security_mode = static_cast<std::uint16_t>(agreed.offered_security_mode)};
    for (const dialect each : agreed.offered_dialects)
        claim.dialects.push_back(static_cast<std::uint16_t>(each));
    std::array<std::byte, 128> room;
    byte_writer writer(room);
    encode(writer, claim);
    const auto input = writer.finish();
    ENSURE(input.has_value());
    request_options how = request(step);
    how.must_sign = true;
    how.payload_bytes = 64;
    io::task<outcome<reply>> asking =
        over.call(wire::command::ioctl,
                  wire::ioctl_args{.code = wire::control_code::validate_negotiate_info,
                                   .file = wire::file_id_of_no_file,
                                   .output_bytes_max = 64,
                                   .input = *input},
                  how);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) {
        const client_error& why = answered.error();
        if (agreed.dialect < dialect::smb_3_0 and knows_no_validation(why.status()))
            co_return outcome<void>{};
        co_return failed(why);
    }
    const auto envelope = wire::decode_ioctl_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid IOCTL reply"));
    const auto said = wire::decode_validate_negotiate_reply(envelope->output);
    if (not said) co_return failed(client_error::of_protocol(step, "invalid VALIDATE_NEGOTIATE_INFO reply"));
    const bool is_same = said->capabilities == wire::bits_of(agreed.server_capabilities) and
                         said->server == agreed.server_guid and
                         said->dialect_revision == static_cast<std::uint16_t>(agreed.dialect) and
                         said->security_mode == static_cast<std::uint16_t>(agreed.security_mode);
    if (is_same) co_return outcome<void>{};
    co_return failed(client_error::of_protocol(step, "the negotiation was manipulated"));
}

namespace {

// The bytes of the address are in network order.
[[nodiscard]] std::optional<io::socket_address> address_of(const wire::network_interface& from,
                                                           std::uint16_t port) {
    std::string text;
    for (std::size_t i = 0; i != (from.ipv6 ? 16U : 4U); ++i) {
        const auto byte = std::to_integer<unsigned>(from.address[i]);
        if (not from.ipv6) {
            text += (i == 0 ? "" : ".") + std::to_string(byte);
            continue;
        }
        constexpr std::string_view digits = "0123456789abcdef";
        if (i != 0 and i % 2 == 0) text += ':';
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    const auto made = io::socket_address::ip(text, port);
    if (not made) return std::nullopt;
    return *made;
}

}  // namespace

io::task<outcome<std::vector<io::socket_address>>> tree::interfaces(std::uint16_t port) noexcept {
    constexpr const char* step = "query the server's network interfaces";
    constexpr std::uint32_t answer_bytes_max = 65536;
    request_options how = request(step);
    how.payload_bytes = answer_bytes_max;
    io::task<outcome<reply>> asking =
        session_.first().call(wire::command::ioctl,
                              wire::ioctl_args{.code = wire::control_code::query_network_interface_info,
                                               .file = wire::file_id_of_no_file,
                                               .output_bytes_max = answer_bytes_max},
                              how);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto envelope = wire::decode_ioctl_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid IOCTL reply"));
    auto said = wire::decode_network_interfaces(envelope->output);
    if (not said)
        co_return failed(client_error::of_protocol(step, "invalid QUERY_NETWORK_INTERFACE_INFO reply"));
    std::ranges::sort(*said, std::greater<>(), &wire::network_interface::link_speed_bits_per_second);
    std::vector<io::socket_address> addresses;
    for (const wire::network_interface& each : *said)
        if (const auto address = address_of(each, port)) addresses.push_back(*address);
    co_return std::move(addresses);
}

io::task<outcome<not_null_ptr<remote_file>>> tree::open(std::string path, open_options how) noexcept {
    constexpr const char* step = "open";
    const auto name = wire_path_of(path, step);
    if (not name) co_return failed(name.error());
    request_options options = request(step);
    options.room_bytes = static_cast<std::uint32_t>(name->size() + 128);
    const wire::create_args asked{.oplock_level = how.oplock,
                                  .desired_access = how.access,
                                  .file_attributes = how.attributes,
                                  .share_access = how.shares,
                                  .disposition = how.disposition,
                                  .options = how.options,
                                  .name = view(*name)};
    io::task<outcome<reply>> asking = session_.first().call(wire::command::create, asked, options);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto said = wire::decode_create_reply(*wire::message_view::of(answered->message));
    if (not said) co_return failed(client_error::of_protocol(step, "invalid CREATE reply"));
    co_return not_null_ptr(std::make_unique<remote_file>(*this, said->file, said->information));
}

namespace {

// Opens and closes. Returns the status reported on opening, and ignores that of closing.
io::task<outcome<file_status>> touch(tree& in, std::string path, open_options how) noexcept {
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(std::move(path), how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error());
    const file_status status = (*opened)->status();
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not closed) co_return failed(closed.error());
    co_return status;
}

}  // namespace

io::task<outcome<file_status>> tree::status(std::string path) noexcept {
    const open_options how{.access = wire::access_mask::read_attributes, .shares = share_all};
    io::task<outcome<file_status>> touching = touch(*this, std::move(path), how);
    co_return co_await std::move(touching);
}

io::task<outcome<void>> tree::create_directory(std::string path) noexcept {
    const open_options how{.access = wire::access_mask::read_attributes,
                           .shares = share_all,
                           .disposition = wire::create_disposition::create,
                           .options = wire::create_options::directory_file};
    io::task<outcome<file_status>> touching = touch(*this, std::move(path), how);
    const auto made = co_await std::move(touching);
    if (not made) co_return failed(made.error().of_step("create directory"));
    co_return outcome<void>{};
}

io::task<outcome<void>> tree::remove(std::string path, bool is_of_directory) noexcept {
    const open_options how{.access = wire::access_mask::delete_object | wire::access_mask::read_attributes,
                           .shares = share_all,
                           .options = wire::create_options::open_reparse_point |
                                      (is_of_directory ? wire::create_options::directory_file
                                                       : wire::create_options::non_directory_file)};
    io::task<outcome<not_null_ptr<remote_file>>> opening = open(std::move(path), how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error().of_step("remove"));
    io::task<outcome<void>> marking = (*opened)->delete_on_close();
    const auto marked = co_await std::move(marking);
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not marked) co_return failed(marked.error().of_step("remove"));
    if (not closed) co_return failed(closed.error());
    co_return outcome<void>{};
}

io::task<outcome<void>> tree::rename(std::string from, std::string to, bool replaces) noexcept {
    const open_options how{.access = wire::access_mask::delete_object | wire::access_mask::read_attributes,
                           .shares = share_all,
                           .options = wire::create_options::open_reparse_point};
    io::task<outcome<not_null_ptr<remote_file>>> opening = open(std::move(from), how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error());
    io::task<outcome<void>> renaming = (*opened)->rename(std::move(to), replaces);
    const auto renamed = co_await std::move(renaming);
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not renamed) co_return failed(renamed.error());
    if (not closed) co_return failed(closed.error());
    co_return outcome<void>{};
}

io::task<void> tree::disconnect() noexcept {
    io::task<outcome<reply>> leaving = session_.first().call(
        wire::command::tree_disconnect, wire::tree_disconnect_args{}, request("disconnect from the share"));
    (void)co_await std::move(leaving);
}

}  // namespace sluice::smb::client
