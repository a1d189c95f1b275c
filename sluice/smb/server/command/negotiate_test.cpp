#include "sluice/smb/wire/message/negotiate.hpp"

#include <array>
#include <span>

#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// NEGOTIATE ([MS-SMB2] 3.3.5.4): the choice of an algorithm for signatures, and the number of
// channels that it permits to a client that numbers its messages from 0 on each connection: see
// docs/formats/smb2-signing.md.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using auth::signing_algorithm;
using wire::command;
using wire::nt_status;
using offers = std::vector<wire::signing_algorithm>;
using enum wire::signing_algorithm;

constexpr auto gmac = signing_algorithm::aes_gmac;
constexpr auto cmac = signing_algorithm::aes_cmac;
constexpr auto hmac = signing_algorithm::hmac_sha256;

class signing_algorithms : public testing::Test {
protected:
    // A server with these algorithms, instead of its defaults.
    void serve(void (*adjust)(server::server_configuration&) = nullptr) {
        where_.emplace(io::simulation_options{.seed = 1}, 1, adjust);
    }
    // The server's choice for a new client, which can log on with it.
    [[nodiscard]] std::optional<signing_algorithm> choice_of(const offers& offered) {
        compliant_client client(*where_, offered);
        EXPECT_EQ(client.log_on("u", "p"), nt_status::success);
        client.sign(true);
        EXPECT_TRUE(client.is_signed_by_key(client.call(command::echo, wire::echo_args{})));
        return client.chosen_signing();
    }
    void TearDown() override { where_->stop(); }

    std::optional<world> where_;
};

TEST_F(signing_algorithms, are_chosen_in_the_order_of_the_defaults_without_a_list) {
    serve();
    EXPECT_EQ(choice_of({hmac_sha256, aes_cmac, aes_gmac}), gmac);
    EXPECT_EQ(choice_of({hmac_sha256, aes_cmac}), cmac);
    EXPECT_EQ(choice_of({hmac_sha256}), hmac);
}

TEST_F(signing_algorithms, are_chosen_in_the_order_of_the_servers_list) {
    serve([](server::server_configuration& c) { c.signing_algorithms = {hmac_sha256, aes_gmac}; });
    EXPECT_EQ(choice_of({aes_gmac, aes_cmac, hmac_sha256}), hmac);
    EXPECT_EQ(choice_of({aes_cmac, aes_gmac}), gmac);
}

TEST_F(signing_algorithms, are_the_protocols_default_if_the_client_offers_none_of_the_list) {
    serve([](server::server_configuration& c) { c.signing_algorithms = {hmac_sha256}; });
    EXPECT_EQ(choice_of({aes_gmac}), std::nullopt);
    EXPECT_EQ(choice_of({aes_cmac, aes_gmac}), std::nullopt);
}

TEST_F(signing_algorithms, without_nonces_permit_many_channels_with_repeated_message_ids) {
    serve([](server::server_configuration& c) { c.signing_algorithms = {aes_cmac}; });
    {
        const offers both{aes_gmac, aes_cmac};
        compliant_client first(*where_, both);
        ASSERT_EQ(first.log_on("u", "p"), nt_status::success);
        std::vector<std::unique_ptr<compliant_client>> more;
        for (int i = 0; i != 8; ++i) {
            more.push_back(std::make_unique<compliant_client>(*where_, both));
            ASSERT_EQ(more.back()->bind_to(first, "u", "p"), nt_status::success) << i;
        }
        for (const auto& each : more) {
            each->sign(true);
            EXPECT_TRUE(each->is_signed_by_key(each->call(command::echo, wire::echo_args{})));
        }
    }
    EXPECT_EQ(where_->nonces.size(), 0U) << "none was used";
}

// The interim and the final reply have one message ID, and so would have one nonce
// ([MS-SMB2] 3.1.4.1).
TEST_F(signing_algorithms, with_nonces_sign_the_final_reply_and_not_the_interim_reply_before_it) {
    serve();
    compliant_client client(*where_, offers{aes_gmac});
    ASSERT_EQ(client.log_on("u", "p"), nt_status::success);
    client.sign(true);
    ASSERT_EQ(client.connect_tree("files"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    const auto directory = client.create("d", how).file;
    const std::size_t nonces = where_->nonces.size();
    const std::uint64_t watching = client.send(
        command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1000, .file = directory, .filter = wire::completion_filter(0xfff)});
    const wire::header interim = client.interim_of(watching);
    EXPECT_EQ(interim.message_id, watching);
    EXPECT_FALSE(wire::has(interim.flags, wire::header_flags::signed_message));
    EXPECT_EQ(interim.signature, wire::message_signature{});
    EXPECT_EQ(where_->nonces.size(), nonces + 2) << "one for the request, one reserved for its final reply";
    (void)client.call(command::close, wire::close_args{.file = directory});
    const auto last = client.answer_to(watching);
    EXPECT_EQ(last.status(), nt_status::notify_cleanup);
    EXPECT_TRUE(client.is_signed_by_key(last));
    EXPECT_EQ(where_->nonces.size(), nonces + 4) << "the same of CLOSE";
}

TEST_F(signing_algorithms, with_nonces_permit_one_further_channel_with_repeated_message_ids) {
    serve();
    where_->nonces.ignore_clients();
    {
        compliant_client first(*where_, offers{aes_gmac});
        ASSERT_EQ(first.log_on("u", "p"), nt_status::success);
        compliant_client second(*where_, offers{aes_gmac});
        ASSERT_EQ(second.bind_to(first, "u", "p"), nt_status::success);
        const std::size_t nonces = where_->nonces.size();
        EXPECT_EQ(nonces, 3U) << "the last reply to the logon has one, and both replies to the binding";
        for (int i = 0; i != 2; ++i) {
            compliant_client third(*where_, offers{aes_gmac});
            EXPECT_EQ(third.bind_to(first, "u", "p"), nt_status::request_out_of_sequence);
            EXPECT_FALSE(first.is_signed_by_key(third.last_answer()));
        }
        EXPECT_EQ(where_->nonces.size(), nonces) << "nothing was signed for the rejected bindings";
        first.sign(true);
        second.sign(true);
        EXPECT_TRUE(first.is_signed_by_key(first.call(command::echo, wire::echo_args{})));
        EXPECT_TRUE(second.is_signed_by_key(second.call(command::echo, wire::echo_args{})));
    }
}

TEST_F(signing_algorithms, are_not_chosen_without_a_common_dialect) {
    serve([](server::server_configuration& c) { c.dialect_min = wire::dialect::smb_3_1_1; });
    compliant_client client(*where_);  // of SMB 3.0.2
    std::array offered{le16(static_cast<std::uint16_t>(wire::dialect::smb_3_0_2))};
    const wire::negotiate_args old{.dialects = wire::code_list<wire::dialect>(std::span(offered))};
    EXPECT_EQ(client.call(command::negotiate, old).status(), nt_status::not_supported);
    EXPECT_EQ(client.call(command::negotiate, wire::negotiate_args{}).status(), nt_status::invalid_parameter);
}

// Only a server that compresses must reject a list without algorithms ([MS-SMB2] 3.3.5.4).
TEST_F(signing_algorithms, are_chosen_for_a_client_that_lists_no_compression_algorithm) {
    serve([](server::server_configuration& c) { c.dialect_min = wire::dialect::smb_3_1_1; });
    compliant_client client(*where_);  // of SMB 3.0.2: its own negotiation had no result
    std::array offered{le16(static_cast<std::uint16_t>(wire::dialect::smb_3_1_1))};
    std::array hashes{le16(static_cast<std::uint16_t>(wire::hash_algorithm::sha_512))};
    std::array codes{le16(static_cast<std::uint16_t>(aes_cmac))};
    const wire::negotiate_args args{
        .dialects = wire::code_list<wire::dialect>(std::span(offered)),
        .contexts = {.preauth =
                         wire::preauth_integrity{
                             .hashes = wire::code_list<wire::hash_algorithm>(std::span(hashes)), .salt = {}},
                     .compression = wire::compression_capabilities{},
                     .signing = wire::code_list<wire::signing_algorithm>(std::span(codes))}};
    const auto said = client.call(command::negotiate, args);
    ASSERT_EQ(said.status(), nt_status::success);
    const auto reply = wire::decode_negotiate_reply(said.message());
    ASSERT_TRUE(reply and reply->contexts.compression and reply->contexts.signing);
    EXPECT_EQ((*reply->contexts.signing)[0], aes_cmac);
    ASSERT_EQ(reply->contexts.compression->algorithms.size(), 1U);
    EXPECT_EQ(reply->contexts.compression->algorithms[0], wire::compression_algorithm::none);
}

}  // namespace
}  // namespace sluice::smb_simulation
