#include "sluice/smb/client/negotiate_probe.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"
#include "sluice/smb/wire/message/frame.hpp"

namespace sluice::smb::client {
namespace {

using wire::dialect;

constexpr std::size_t dialects_max = 5;
constexpr std::size_t algorithms_max = 8;
constexpr std::size_t request_bytes_max = 512;
constexpr std::size_t salt_bytes = 32;
constexpr std::size_t recognisable_bytes = 5;  // as many as "HTTP/" has

// An SMB1 header: its identifier, the command and the place of the words that follow it.
constexpr std::array<std::byte, 4> smb1_id{std::byte{0xff}, std::byte{'S'}, std::byte{'M'}, std::byte{'B'}};
constexpr std::byte smb1_negotiate_command{0x72};
constexpr std::size_t smb1_header_bytes = 32;

// The codes of a list in the form of the wire. Lives as long as the request is encoded.
template <class Code>
class wire_codes {
public:
    explicit wire_codes(std::span<const Code> codes) : count_(codes.size()) {
        ENSURE(count_ <= algorithms_max, "too many algorithms in an offer");
        for (std::size_t i = 0; i != count_; ++i)
            codes_[i] = le16(static_cast<std::uint16_t>(codes[i]));
    }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] wire::code_list<Code> list() const noexcept {
        return wire::code_list<Code>(std::span(codes_).first(count_));
    }

private:
    std::array<le16, algorithms_max> codes_{};
    std::size_t count_;
};

// Writes a frame around the message that `encode_message` writes.
template <class Encode>
[[nodiscard]] std::vector<std::byte> framed(const Encode& encode_message) {
    std::vector<std::byte> frame(request_bytes_max);
    byte_writer message(
        mutable_bytes(frame.data() + wire::frame_prefix_bytes, frame.size() - wire::frame_prefix_bytes));
    encode_message(message);
    const auto written = message.finish();
    ENSURE(written.has_value(), "probe longer than request_bytes_max");
    byte_writer prefix(mutable_bytes(frame.data(), wire::frame_prefix_bytes));
    wire::encode_frame_prefix(prefix, written->size());
    frame.resize(wire::frame_prefix_bytes + written->size());
    return frame;
}

[[nodiscard]] bool begins_with(bytes_view bytes, std::string_view text) noexcept {
    const auto front = bytes.first(text.size());
    if (not front) return false;
    return std::ranges::equal(*front, text, {}, [](std::byte each) { return static_cast<char>(each); });
}

// A record of TLS: an alert or a handshake message, version 3.x (RFC 8446 5.1).
[[nodiscard]] bool is_tls(bytes_view bytes) noexcept {
    const auto front = bytes.first(2);
    if (not front) return false;
    const std::byte kind = front->data()[0];
    return (kind == std::byte{0x15} or kind == std::byte{0x16}) and front->data()[1] == std::byte{3};
}

// A packet of the session service: its replies have the types 0x82 to 0x85.
[[nodiscard]] bool is_netbios(bytes_view bytes) noexcept {
    const std::byte kind = bytes.data()[0];
    return kind >= std::byte{0x82} and kind <= std::byte{0x85};
}

[[nodiscard]] probed_protocol protocol_without_frame(bytes_view bytes) noexcept {
    if (begins_with(bytes, "HTTP/") or begins_with(bytes, "<")) return probed_protocol::http;
    if (begins_with(bytes, "SSH-")) return probed_protocol::ssh;
    if (is_tls(bytes)) return probed_protocol::tls;
    if (is_netbios(bytes)) return probed_protocol::netbios_error;
    return probed_protocol::unknown;
}

// [MS-CIFS] 2.2.4.52.2: after the header come the number of words and the index of the dialect;
// 0xffff means that the server accepts none.
[[nodiscard]] probed_protocol judge_smb1(bytes_view message) noexcept {
    const auto tail = message.from(smb1_header_bytes);
    if (not tail) return probed_protocol::unknown;
    if (message.data()[smb1_id.size()] != smb1_negotiate_command) return probed_protocol::unknown;
    byte_reader words(*tail);
    const auto count = words.take<le8>();
    const auto index = words.take<le16>();
    if (not count or not index or count->value() == 0) return probed_protocol::smb1_refused;
    return index->value() == 0 ? probed_protocol::smb1 : probed_protocol::smb1_refused;
}

[[nodiscard]] negotiate_facts facts_of(const wire::negotiate_reply& said) {
    negotiate_facts facts{.dialect = said.dialect,
                          .security_mode = said.security_mode,
                          .capabilities = said.capabilities,
                          .server_guid = said.server_guid,
                          .transact_bytes_max = said.transact_bytes_max,
                          .read_bytes_max = said.read_bytes_max,
                          .write_bytes_max = said.write_bytes_max,
                          .system_time = said.system_time,
                          .cipher = {},
                          .signing = {},
                          .compressions = {},
                          .has_preauth = false,
                          .has_posix = said.contexts.posix};
    const wire::negotiate_contexts& extras = said.contexts;
    if (extras.ciphers and extras.ciphers->size() == 1) facts.cipher = (*extras.ciphers)[0];
    if (extras.signing and extras.signing->size() == 1) facts.signing = (*extras.signing)[0];
    if (extras.preauth) facts.has_preauth = extras.preauth->hashes.contains(wire::hash_algorithm::sha_512);
    if (extras.compression) {
        const auto& offered = extras.compression->algorithms;
        for (std::size_t i = 0; i != std::min(offered.size(), algorithms_max); ++i)
            if (offered[i] != wire::compression_algorithm::none) facts.compressions.push_back(offered[i]);
    }
    return facts;
}

[[nodiscard]] probe_answer judge_smb2(bytes_view frame) {
    const auto invalid = [](wire::decode_error why) {
        return probe_answer{.protocol = probed_protocol::smb2_invalid, .violation = why};
    };
    const auto message = wire::message_view::of(frame);
    if (not message) return invalid(message.error());
    const wire::header& header = message->header();
    const bool is_reply =
        header.command == wire::command::negotiate and wire::has(header.flags, wire::header_flags::response);
    if (not is_reply) return invalid(wire::decode_error::bad_value);
    if (header.status != wire::nt_status::success)
        return {.protocol = probed_protocol::smb2_refused, .status = header.status};
    const auto said = wire::decode_negotiate_reply(*message);
    if (not said) return invalid(said.error());
    return {.protocol = probed_protocol::smb2, .reply = facts_of(*said)};
}

}  // namespace

std::vector<std::byte> negotiate_probe_request(const negotiate_offer& offer, random_source& random) {
    ENSURE(not offer.dialects.empty() and offer.dialects.size() <= dialects_max);
    const wire_codes<dialect> dialects(offer.dialects);
    const wire_codes<wire::cipher> ciphers(offer.ciphers);
    const wire_codes<wire::signing_algorithm> signings(offer.signings);
    const wire_codes<wire::compression_algorithm> compressions(offer.compressions);
    const le16 sha_512(static_cast<std::uint16_t>(wire::hash_algorithm::sha_512));
    std::array<std::byte, salt_bytes> salt;
    random.fill(salt);
    wire::negotiate_args hello{.security_mode = wire::security_mode::signing_enabled,
                               .capabilities = wire::capabilities::large_mtu,
                               .client_guid = {},
                               .dialects = dialects.list(),
                               .contexts = {}};
    random.fill(hello.client_guid.bytes);
    if (std::ranges::max(offer.dialects) >= dialect::smb_3_0)
        hello.capabilities |= wire::capabilities::encryption | wire::capabilities::multi_channel |
                              wire::capabilities::leasing | wire::capabilities::directory_leasing |
                              wire::capabilities::persistent_handles;
    if (std::ranges::find(offer.dialects, dialect::smb_3_1_1) != offer.dialects.end()) {
        hello.contexts.preauth = wire::preauth_integrity{
            .hashes = wire::code_list<wire::hash_algorithm>(std::span(&sha_512, 1)), .salt = salt};
        if (not ciphers.empty()) hello.contexts.ciphers = ciphers.list();
        if (not signings.empty()) hello.contexts.signing = signings.list();
        if (not compressions.empty())
            hello.contexts.compression = wire::compression_capabilities{.flags = wire::compression_chained,
                                                                        .algorithms = compressions.list()};
    }
    return framed([&hello](byte_writer& writer) {
        encode(writer, wire::header{.command = wire::command::negotiate, .credits = 1});
        encode(writer, hello);
    });
}

std::vector<std::byte> smb1_probe_request() {
    constexpr std::string_view dialects("\x02NT LM 0.12\0", 12);
    return framed([dialects](byte_writer& writer) {
        writer.put_bytes(smb1_id);
        writer.put(le8(std::to_integer<std::uint8_t>(smb1_negotiate_command)));
        writer.put(le32(0));       // status
        writer.put(le8(0x18));     // paths without case, canonical
        writer.put(le16(0xc853));  // Unicode, NT status codes, extended security
        writer.put_zeros(12);      // the upper half of the process, the signature
        writer.put_zeros(8);       // tree, process, user, number of the request
        writer.put(le8(0));        // no words
        writer.put(le16(static_cast<std::uint16_t>(dialects.size())));
        writer.put_bytes(std::as_bytes(std::span(dialects)));
    });
}

probe_answer classify_probe_answer(bytes_view received) {
    if (received.empty()) return {};
    if (received.data()[0] != std::byte{0}) {
        if (received.size() < recognisable_bytes) return {};
        return {.protocol = protocol_without_frame(received)};
    }
    const auto length = wire::decode_frame_prefix(received, limits::first_frame_bytes_max);
    if (not length and length.error() == wire::decode_error::truncated) return {};
    if (not length) return {.protocol = probed_protocol::unknown};
    const auto tail = received.from(wire::frame_prefix_bytes);
    ENSURE(tail.has_value(), "a prefix was decoded from fewer bytes than it has");
    const auto frame = tail->first(*length);
    // Fewer than four bytes of a message cannot be of any protocol, however many follow.
    if (*length < smb1_id.size()) return {.protocol = probed_protocol::unknown};
    if (not frame) {
        const auto beginning = tail->first(smb1_id.size());
        const bool is_smb = not beginning or wire::kind_of_frame(*beginning).has_value();
        return {.protocol = is_smb ? probed_protocol::incomplete : probed_protocol::unknown};
    }
    const auto kind = wire::kind_of_frame(*frame);
    if (not kind) return {.protocol = probed_protocol::unknown};
    if (*kind == wire::frame_kind::smb1) return {.protocol = judge_smb1(*frame)};
    if (*kind == wire::frame_kind::smb2) return judge_smb2(*frame);
    return {.protocol = probed_protocol::smb2_invalid, .violation = wire::decode_error::unsupported};
}

}  // namespace sluice::smb::client
