#include "sluice/smb/client/negotiate_probe.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/smb1_negotiate.hpp"

// The bytes that a probe sends, and the meaning of those that it receives.

namespace sluice::smb::client {
namespace {

using wire::dialect;

[[nodiscard]] std::vector<std::byte> bytes_of_text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

[[nodiscard]] probed_protocol protocol_of(std::string_view text) {
    return classify_probe_answer(bytes_of_text(text)).protocol;
}

// A frame of a server around a message that `write` writes.
template <class Write>
[[nodiscard]] std::vector<std::byte> framed(const Write& write) {
    std::vector<std::byte> bytes(1024);
    byte_writer writer{mutable_bytes(bytes.data() + 4, bytes.size() - 4)};
    write(writer);
    const std::size_t size = writer.finish()->size();
    byte_writer prefix{mutable_bytes(bytes.data(), 4)};
    wire::encode_frame_prefix(prefix, size);
    bytes.resize(4 + size);
    return bytes;
}

[[nodiscard]] std::vector<std::byte> reply_frame(wire::header header, const wire::negotiate_reply& reply) {
    header.flags = wire::header_flags::response;
    return framed([&](byte_writer& writer) {
        encode(writer, header);
        encode(writer, reply);
    });
}

// An SMB1 NEGOTIATE reply with this index of the chosen dialect.
[[nodiscard]] std::vector<std::byte> smb1_reply(std::uint16_t index) {
    return framed([&](byte_writer& writer) {
        writer.put_bytes(bytes_of_text("\xffSMB\x72"));
        writer.put_zeros(27);
        writer.put(le8(17));
        writer.put(le16(index));
        writer.put_zeros(34);
    });
}

TEST(negotiate_probe, request_contains_the_offer) {
    seeded_random random(1);
    const auto frame = negotiate_probe_request({.dialects = {dialect::smb_3_0, dialect::smb_3_1_1},
                                                .ciphers = {wire::cipher::aes_256_gcm},
                                                .signings = {wire::signing_algorithm::aes_gmac},
                                                .compressions = {wire::compression_algorithm::lz77}},
                                               random);
    const auto message = wire::message_view::of(bytes_view(frame.data() + 4, frame.size() - 4));
    ASSERT_TRUE(message);
    const auto offer = wire::decode_negotiate(*message);
    ASSERT_TRUE(offer);
    EXPECT_EQ(offer->dialects.size(), 2U);
    EXPECT_TRUE(offer->contexts.preauth);
    EXPECT_EQ((*offer->contexts.ciphers)[0], wire::cipher::aes_256_gcm);
    EXPECT_EQ((*offer->contexts.signing)[0], wire::signing_algorithm::aes_gmac);
    EXPECT_EQ(offer->contexts.compression->algorithms[0], wire::compression_algorithm::lz77);
}

TEST(negotiate_probe, request_without_3_1_1_has_no_contexts) {
    seeded_random random(1);
    const auto frame = negotiate_probe_request({.dialects = {dialect::smb_2_0_2},
                                                .ciphers = {wire::cipher::aes_128_gcm},
                                                .signings = {},
                                                .compressions = {}},
                                               random);
    const auto message = wire::message_view::of(bytes_view(frame.data() + 4, frame.size() - 4));
    ASSERT_TRUE(message);
    const auto offer = wire::decode_negotiate(*message);
    ASSERT_TRUE(offer);
    EXPECT_EQ(offer->contexts.count(), 0U);
}

TEST(negotiate_probe, smb1_request_offers_no_smb2_dialect) {
    const auto frame = smb1_probe_request();
    const auto offer = wire::decode_smb1_negotiate(bytes_view(frame.data() + 4, frame.size() - 4));
    ASSERT_TRUE(offer);
    EXPECT_FALSE(offer->smb_2_002);
    EXPECT_FALSE(offer->smb_2_wildcard);
}

TEST(negotiate_probe, reply_has_the_choices_of_the_server) {
    const le16 sha_512(1);
    const le16 gcm(2);
    const le16 gmac(2);
    wire::negotiate_reply reply{.dialect = dialect::smb_3_1_1, .read_bytes_max = 8U << 20};
    reply.contexts.preauth = wire::preauth_integrity{
        .hashes = wire::code_list<wire::hash_algorithm>(std::span(&sha_512, 1)), .salt = {}};
    reply.contexts.ciphers = wire::code_list<wire::cipher>(std::span(&gcm, 1));
    reply.contexts.signing = wire::code_list<wire::signing_algorithm>(std::span(&gmac, 1));
    const auto answer = classify_probe_answer(reply_frame({}, reply));
    ASSERT_EQ(answer.protocol, probed_protocol::smb2);
    EXPECT_EQ(answer.reply.dialect, dialect::smb_3_1_1);
    EXPECT_EQ(answer.reply.read_bytes_max, 8U << 20);
    EXPECT_EQ(answer.reply.cipher, wire::cipher::aes_128_gcm);
    EXPECT_EQ(answer.reply.signing, wire::signing_algorithm::aes_gmac);
    EXPECT_TRUE(answer.reply.has_preauth);
}

TEST(negotiate_probe, each_beginning_of_a_reply_is_incomplete) {
    const auto frame = reply_frame({}, {.dialect = dialect::smb_3_0});
    for (std::size_t size = 0; size != frame.size(); ++size)
        EXPECT_EQ(classify_probe_answer(bytes_view(frame.data(), size)).protocol, probed_protocol::incomplete)
            << size;
    EXPECT_EQ(classify_probe_answer(frame).protocol, probed_protocol::smb2);
}

TEST(negotiate_probe, error_of_the_server_is_its_status) {
    const auto answer = classify_probe_answer(reply_frame({.status = wire::nt_status::not_supported}, {}));
    EXPECT_EQ(answer.protocol, probed_protocol::smb2_refused);
    EXPECT_EQ(answer.status, wire::nt_status::not_supported);
}

TEST(negotiate_probe, reply_to_another_command_is_invalid) {
    const auto answer = classify_probe_answer(reply_frame({.command = wire::command::echo}, {}));
    EXPECT_EQ(answer.protocol, probed_protocol::smb2_invalid);
}

TEST(negotiate_probe, truncated_message_is_invalid) {
    const auto frame = framed([](byte_writer& writer) {
        encode(writer, wire::header{.flags = wire::header_flags::response});
        writer.put_zeros(3);
    });
    const auto answer = classify_probe_answer(frame);
    EXPECT_EQ(answer.protocol, probed_protocol::smb2_invalid);
    EXPECT_EQ(answer.violation, wire::decode_error::truncated);
}

TEST(negotiate_probe, distinguishes_smb1_from_its_refusal) {
    EXPECT_EQ(classify_probe_answer(smb1_reply(0)).protocol, probed_protocol::smb1);
    EXPECT_EQ(classify_probe_answer(smb1_reply(0xffff)).protocol, probed_protocol::smb1_refused);
}

TEST(negotiate_probe, recognises_other_protocols_by_their_first_bytes) {
    EXPECT_EQ(protocol_of("HTTP/1.1 400 Bad Request\r\n"), probed_protocol::http);
    EXPECT_EQ(protocol_of("<html>"), probed_protocol::http);
    EXPECT_EQ(protocol_of("SSH-2.0-OpenSSH_9.2\r\n"), probed_protocol::ssh);
    EXPECT_EQ(protocol_of(std::string_view("\x15\x03\x01\x00\x02", 5)), probed_protocol::tls);
    EXPECT_EQ(protocol_of(std::string_view("\x83\x00\x00\x01\x80", 5)), probed_protocol::netbios_error);
    EXPECT_EQ(protocol_of("220 mail.example.org ESMTP"), probed_protocol::unknown);
}

TEST(negotiate_probe, awaits_the_beginning_of_another_protocol) {
    EXPECT_EQ(protocol_of("H"), probed_protocol::incomplete);
    EXPECT_EQ(protocol_of("SSH-"), probed_protocol::incomplete);
    EXPECT_EQ(protocol_of("<html"), probed_protocol::http);
}

TEST(negotiate_probe, does_not_wait_for_a_frame_that_cannot_be_smb) {
    EXPECT_EQ(protocol_of(std::string_view("\x00\x00\x01\x00HTTP", 8)), probed_protocol::unknown);
    EXPECT_EQ(protocol_of(std::string_view("\x00\xff\xff\xff", 4)), probed_protocol::unknown);
    EXPECT_EQ(protocol_of(std::string_view("\x00\x00\x00\x00", 4)), probed_protocol::unknown);
    EXPECT_EQ(protocol_of(std::string_view("\x00\x00\x00\x02xx", 6)), probed_protocol::unknown);
}

}  // namespace
}  // namespace sluice::smb::client
