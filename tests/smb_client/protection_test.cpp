// Signing and encryption on one channel and several: the requests that the server accepts, and that
// no nonce is used twice, which each world checks for every message.

#include <gtest/gtest.h>

#include <array>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_client/relay.hpp"
#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::auth::signing_algorithm;
using smb::server::protection;
using smb::server::server_configuration;
using smb::wire::dialect;
using smb::wire::nt_status;

constexpr open_options for_everything{
    .access =
        smb::wire::file_generic_read | smb::wire::file_generic_write | smb::wire::access_mask::delete_object,
    .shares = smb::wire::share_access(7),
    .disposition = smb::wire::create_disposition::open_if,
};

// A session of several channels.
struct channels {
    channels(rig& in, connection_options options) : first(in, options) {
        if (first.error) return;
        while (more.size() + 1 < options.channels) {
            auto how = first.connection->options();
            auto opened = in.wait_for(connection::open(in.dependencies(), in.connect(), how));
            if (not opened) break;
            more.push_back(opened->release());
            if (const auto bound = in.wait_for(first.session->bind(*more.back(), rig::who())); not bound) {
                refused = bound.error();
                break;
            }
        }
    }
    ~channels() {
        for (const auto& each : more)
            first.where.wait_for(each->close());
    }

    logged_on first;
    std::vector<std::unique_ptr<connection>> more;
    std::optional<client_error> refused;
};

[[nodiscard]] bool echoes(rig& in, connection& over) {
    const request_options how{.step = "echo", .must_sign = true};
    return in.wait_for(over.call(smb::wire::command::echo, smb::wire::echo_args{}, how)).has_value();
}

TEST(protection_of_channels, by_gmac_repeats_no_nonce_on_eight_channels) {
    rig world;
    channels client(world, {.server_name = "server", .channels = 8});
    ASSERT_FALSE(client.refused) << client.refused->message();
    EXPECT_EQ(client.first.connection->agreed().signing, signing_algorithm::aes_gmac);
    for (int i = 0; i != 50; ++i)
        for (connection* const each : client.first.session->channels())
            ASSERT_TRUE(echoes(world, *each));
    EXPECT_EQ(client.first.session->channels().size(), 8U);
    EXPECT_GT(world.nonces.size(), 800U) << "each request and each reply has one";
}

TEST(protection_of_channels, by_gmac_is_limited_by_the_reserved_message_ids) {
    rig world;
    channels client(world, {.server_name = "server", .channels = 2});
    ASSERT_FALSE(client.refused) << client.refused->message();
    auto opened = world.wait_for(
        connection::open(world.dependencies(), world.connect(), client.first.connection->options()));
    ASSERT_TRUE(opened);
    const auto bound = world.wait_for(client.first.session->bind(**opened, rig::who()));
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().which(), client_error::kind::policy);
    world.wait_for((*opened)->close());
}

TEST(protection_of_channels, by_cmac_allows_as_many_channels_as_a_session_may_have) {
    rig world;
    channels client(world, {.server_name = "server", .channels = 12, .offers_gmac = false});
    ASSERT_FALSE(client.refused) << client.refused->message();
    EXPECT_EQ(client.first.connection->agreed().signing, signing_algorithm::aes_cmac);
    EXPECT_EQ(client.first.session->channels().size(), 12U);
}

TEST(protection_of_channels, with_encryption_repeats_no_nonce) {
    rig world;
    channels client(world, {.server_name = "server", .encryption = encryption::required, .channels = 4});
    ASSERT_FALSE(client.refused) << client.refused->message();
    for (int i = 0; i != 50; ++i)
        for (connection* const each : client.first.session->channels())
            ASSERT_TRUE(echoes(world, *each));
    EXPECT_GT(world.nonces.size(), 400U);
}

// Counts the frames of a server: encrypted ones, and unencrypted breaks.
struct heard {
    std::size_t plain_breaks = 0;
    std::size_t encrypted = 0;
    void operator()(std::vector<std::byte>& messages) {
        if (smb::wire::kind_of_frame(messages) == smb::wire::frame_kind::encrypted) {
            ++encrypted;
            return;
        }
        const auto message = smb::wire::message_view::of(messages);
        if (message and message->header().command == smb::wire::command::oplock_break) ++plain_breaks;
    }
};

void encrypt_share(server_configuration& c) {
    c.shares.front().encryption = protection::required;
}

TEST(share_that_requires_encryption, encrypts_oplock_breaks) {
    rig world(encrypt_share);
    heard said;
    relay between(*world.loop, world.connect(), [&](std::vector<std::byte>& bytes) { said(bytes); });
    logged_on holder(world, {}, between.take_clients_end());
    ASSERT_FALSE(holder.error) << holder.error->message();
    auto how = for_everything;
    how.oplock = smb::wire::oplock_level::batch;
    const auto held = world.wait_for(holder.tree->open("f", how));
    ASSERT_TRUE(held) << held.error().message();
    const std::size_t before = said.encrypted;
    logged_on other(world);
    const auto opened =
        world.wait_for(other.tree->open("f", for_everything));  // once the break has timed out
    EXPECT_TRUE(opened);
    EXPECT_EQ(said.plain_breaks, 0U);
    EXPECT_EQ(said.encrypted, before + 1) << "the break was sent";
}

TEST(share_that_requires_encryption, rejects_an_unencrypted_create_on_every_channel) {
    rig world(encrypt_share);
    channels client(world, {.server_name = "server", .channels = 2});
    ASSERT_FALSE(client.refused) << client.refused->message();
    const std::string name = smb::wire::utf16_of("f").value();
    const smb::wire::create_args create{.desired_access = smb::wire::file_generic_read,
                                        .share_access = smb::wire::share_access(7),
                                        .disposition = smb::wire::create_disposition::open_if,
                                        .name = std::as_bytes(std::span(name))};
    for (connection* const each : client.first.session->channels()) {
        auto how = client.first.tree->request("create");
        ASSERT_TRUE(how.must_seal);
        EXPECT_TRUE(world.wait_for(each->call(smb::wire::command::create, create, how)));
        how.must_seal = false;
        const auto plain = world.wait_for(each->call(smb::wire::command::create, create, how));
        ASSERT_FALSE(plain);
        EXPECT_EQ(plain.error().status(), nt_status::access_denied);
    }
}

void add_encrypted_share(server_configuration& c) {
    c.shares.push_back(c.shares.front());
    c.shares.front().encryption = protection::required;
    c.shares.back().name = "plain";
}

// A client that has opened a file of the encrypted share, and one of the other.
class copying_client {
public:
    explicit copying_client(rig& in) : world_(in), client_(in) {
        EXPECT_FALSE(client_.error);
        auto connected = in.wait_for(tree::connect(*client_.session, "plain"));
        EXPECT_TRUE(connected);
        plain_ = connected->release();
        source_ = open(*client_.tree, "source");
        target_ = open(*plain_, "target");
        static constexpr std::array<std::byte, 512> data{};
        const smb::wire::write_args writing{.file = source_, .data = data};
        EXPECT_TRUE(in.wait_for(
            client_.connection->call(smb::wire::command::write, writing, request_of(*client_.tree, true))));
    }

    [[nodiscard]] nt_status copy_chunk(bool is_encrypted) {
        const auto found =
            control(*client_.tree, source_, smb::wire::control_code::srv_request_resume_key, {}, true);
        if (not found) return found.error();
        const auto key = smb::wire::decode_resume_key(*found);
        std::vector<std::byte> room(56);
        byte_writer writer{mutable_bytes(room)};
        encode(writer, smb::wire::copy_chunk_request{.source = *key, .chunks = {{.length = 512}}});
        return status_of(control(*plain_, target_, smb::wire::control_code::srv_copychunk_write,
                                 *writer.finish(), is_encrypted));
    }
    [[nodiscard]] nt_status copy_by_token(bool is_encrypted) {
        std::vector<std::byte> room(1024);
        byte_writer reading{mutable_bytes(room)};
        encode(reading, smb::wire::offload_read_request{.length = 512});
        const auto read =
            control(*client_.tree, source_, smb::wire::control_code::offload_read, *reading.finish(), true);
        if (not read) return read.error();
        const auto token = smb::wire::decode_offload_read_reply(*read)->token;
        byte_writer writing{mutable_bytes(room)};
        encode(writing, smb::wire::offload_write_request{.length = 512, .token = token});
        return status_of(control(*plain_, target_, smb::wire::control_code::offload_write, *writing.finish(),
                                 is_encrypted));
    }

private:
    using output = std::expected<std::vector<std::byte>, nt_status>;

    [[nodiscard]] static nt_status status_of(const output& of) {
        return of ? nt_status::success : of.error();
    }
    [[nodiscard]] static request_options request_of(const tree& in, bool is_encrypted) {
        auto how = in.request("copy");
        how.must_seal = is_encrypted;
        how.room_bytes = 2048;
        return how;
    }
    [[nodiscard]] smb::wire::file_id open(const tree& in, const char* name) {
        const std::string utf16 = smb::wire::utf16_of(name).value();
        const smb::wire::create_args create{
            .desired_access = smb::wire::file_generic_read | smb::wire::file_generic_write,
            .share_access = smb::wire::share_access(7),
            .disposition = smb::wire::create_disposition::open_if,
            .name = std::as_bytes(std::span(utf16))};
        const auto opened = world_.wait_for(
            client_.connection->call(smb::wire::command::create, create, in.request("create")));
        EXPECT_TRUE(opened);
        return smb::wire::decode_create_reply(*smb::wire::message_view::of(opened->message))->file;
    }
    [[nodiscard]] output control(const tree& in, const smb::wire::file_id& file, smb::wire::control_code code,
                                 bytes_view input, bool is_encrypted) {
        const smb::wire::ioctl_args asked{
            .code = code, .file = file, .output_bytes_max = 1024, .input = input};
        const auto answered = world_.wait_for(
            client_.connection->call(smb::wire::command::ioctl, asked, request_of(in, is_encrypted)));
        if (not answered) return std::unexpected(answered.error().status());
        const auto reply = smb::wire::decode_ioctl_reply(*smb::wire::message_view::of(answered->message));
        return std::vector<std::byte>(reply->output.begin(), reply->output.end());
    }

    rig& world_;
    logged_on client_;
    std::unique_ptr<tree> plain_;
    smb::wire::file_id source_{};
    smb::wire::file_id target_{};
};

TEST(share_that_requires_encryption, is_the_source_of_copies_to_others_by_encrypted_requests_only) {
    rig world(add_encrypted_share);
    copying_client client(world);
    EXPECT_EQ(client.copy_chunk(false), nt_status::not_supported);
    EXPECT_EQ(client.copy_chunk(true), nt_status::success);
    EXPECT_EQ(client.copy_by_token(false), nt_status::invalid_token);
    EXPECT_EQ(client.copy_by_token(true), nt_status::success);
}

TEST(tree_connect, that_is_neither_signed_nor_encrypted_ends_a_connection_of_smb_3_1_1) {
    for (const auto newest : {dialect::smb_3_1_1, dialect::smb_3_0_2}) {
        rig world;
        logged_on client(world, {.server_name = "server", .dialect_max = newest, .signs = false});
        ASSERT_FALSE(client.error) << client.error->message();
        const std::string path = smb::wire::utf16_of("\\\\server\\files").value();
        const smb::wire::tree_connect_args connect{.path = std::as_bytes(std::span(path))};
        const request_options how{.step = "connect"};
        const auto answered =
            world.wait_for(client.connection->call(smb::wire::command::tree_connect, connect, how));
        EXPECT_EQ(answered.has_value(), newest != dialect::smb_3_1_1);
        EXPECT_EQ(client.connection->is_broken(), newest == dialect::smb_3_1_1);
    }
}

TEST(client_guid, with_a_session_of_one_dialect_gets_no_session_of_another) {
    rig world;
    connection_options options;
    options.client_guid.bytes[0] = std::byte{1};
    logged_on first(world, options);
    ASSERT_FALSE(first.error);
    options.dialect_max = dialect::smb_3_0_2;
    {
        logged_on second(world, options);
        ASSERT_TRUE(second.error);
        EXPECT_EQ(second.error->status(), nt_status::user_session_deleted);
    }
    options.client_guid.bytes[0] = std::byte{2};
    const logged_on other(world, options);
    EXPECT_FALSE(other.error) << "another client may use it";
}

// NEGOTIATE is not signed, so that an attacker can remove a capability from the reply.
TEST(client_on_a_tampered_line, finds_missing_capabilities_by_validating_the_negotiation) {
    for (const bool tampers : {false, true}) {
        rig world;
        relay between(*world.loop, world.connect(), [&](std::vector<std::byte>& bytes) {
            constexpr std::size_t capabilities_offset = smb::wire::header_bytes + 24;
            const auto message = smb::wire::message_view::of(bytes);
            if (not tampers or not message or message->header().command != smb::wire::command::negotiate)
                return;
            bytes[capabilities_offset] &= ~std::byte{0x02};  // leasing
        });
        logged_on client(world, {.server_name = "server", .dialect_max = dialect::smb_3_0_2},
                         between.take_clients_end());
        EXPECT_EQ(client.error.has_value(), tampers);
        if (tampers) EXPECT_EQ(client.error->which(), client_error::kind::protocol);
    }
}

}  // namespace
}  // namespace sluice::smb_client_testing
