// Compression of messages ([MS-SMB2] 3.3.5.2.1.2, 3.3.5.4): negotiation, compressed requests, and
// attacks. tests/smb_client/compression_test.cpp tests whole transfers, with compressed replies.

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {
namespace {

using algorithm = wire::compression_algorithm;
using message_bytes = std::vector<std::byte>;

const std::vector<algorithm> all{algorithm::lz77_huffman, algorithm::lz4, algorithm::lznt1,
                                 algorithm::pattern_v1, algorithm::lz77};

void adjust(server::server_configuration& of) {
    of.compresses = true;
    of.signing = server::protection::offered;
}
void adjust_to_default(server::server_configuration& of) {
    of.signing = server::protection::offered;
}

std::string text_of(std::size_t size) {
    std::string text;
    for (int i = 0; text.size() < size; ++i)
        text += "line " + std::to_string(i / 3) + " in a file\n";
    return text.substr(0, size);
}

wire::negotiated_compression agreement(std::vector<algorithm> on, bool is_chained) {
    std::vector<le16> codes;
    for (const algorithm each : on)
        codes.emplace_back(static_cast<std::uint16_t>(each));
    return wire::negotiated_compression::choose(
        {.flags = is_chained ? wire::compression_chained : 0,
         .algorithms = wire::code_list<algorithm>(std::span<const le16>(codes))});
}

message_bytes compressed(const message_bytes& message, const wire::negotiated_compression& agreed,
                         std::size_t head_bytes = 0) {
    const auto work = std::make_unique<wire::compression_work_area>();
    message_bytes room(message.size());
    const auto size = wire::compress_message(
        {.head = *bytes_view(message).first(head_bytes), .data = *bytes_view(message).from(head_bytes)},
        agreed, room, *work);
    EXPECT_TRUE(size);
    room.resize(size.value_or(0));
    return room;
}

// A compressed message of parts, in the form of the specification.
class frame_builder {
public:
    explicit frame_builder(std::uint32_t segment_bytes) {
        put(le32(0x424d53fc));
        put(le32(segment_bytes));
    }
    frame_builder& put_unchained(algorithm one, std::uint32_t offset) {
        put(le16(static_cast<std::uint16_t>(one)));
        put(le16(0));
        put(le32(offset));
        return *this;
    }
    frame_builder& put_element(algorithm one, std::size_t length) {
        put(le16(static_cast<std::uint16_t>(one)));
        put(le16(std::exchange(is_first_, false) ? 1 : 0));
        put(le32(static_cast<std::uint32_t>(length)));
        return *this;
    }
    frame_builder& put_run(std::uint32_t repetitions) {
        put_element(algorithm::pattern_v1, 8);
        put(le32('x'));
        put(le32(repetitions));
        return *this;
    }
    frame_builder& put_bytes(bytes_view bytes) {
        made_.insert(made_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    operator bytes_view() const { return made_; }  // NOLINT: converts

private:
    template <wire_type T>
    void put(const T& field) {
        put_bytes(bytes_of(field));
    }
    message_bytes made_;
    bool is_first_ = true;
};

class compression : public testing::Test {
protected:
    void serve(void (*how)(server::server_configuration&) = adjust) {
        where_.emplace(io::simulation_options{.seed = 1}, 1, how);
    }
    ~compression() override { where_->stop(); }

    // A client that has logged on and opened a file.
    std::unique_ptr<compliant_client> logged_on(std::vector<algorithm> offered = all) {
        auto client = std::make_unique<compliant_client>(
            *where_, std::vector{wire::signing_algorithm::aes_cmac}, std::move(offered));
        EXPECT_EQ(client->log_on("u", "p"), nt_status::success);
        client->sign(true);  // SMB 3.1.1 requires it for this request
        EXPECT_EQ(client->connect_tree("files"), nt_status::success);
        client->sign(false);
        file_ = client->create("f").file;
        return client;
    }
    [[nodiscard]] message_bytes write_of(compliant_client& client, const std::string& text) const {
        return client.encoded(command::write, wire::write_args{.file = file_, .data = view(text)});
    }
    // A WRITE up to its data.
    [[nodiscard]] message_bytes write_head(compliant_client& client, std::size_t data_bytes) const {
        client.charge = static_cast<std::uint16_t>((data_bytes + 65'535) / 65'536);
        message_bytes head = write_of(client, "x");
        client.charge = 1;
        head.pop_back();
        const le32 length(static_cast<std::uint32_t>(data_bytes));
        std::memcpy(head.data() + wire::header_bytes + 4, &length, sizeof length);
        return head;
    }
    [[nodiscard]] std::string content(compliant_client& client) const {
        const auto said = client.call(command::read, wire::read_args{.file = file_, .length_bytes = 10'000});
        if (said.status() != nt_status::success) return {};
        const bytes_view data = wire::decode_read_reply(said.message())->data;
        return {reinterpret_cast<const char*>(data.data()), data.size()};
    }
    void expect_rejected(bytes_view frame) {
        const auto client = logged_on();
        client->send_frame(frame);
        EXPECT_TRUE(client->is_rejected());
    }

    std::optional<world> where_;
    wire::file_id file_{};
};

TEST_F(compression, is_negotiated_with_the_supported_algorithms_in_the_order_of_the_client) {
    serve();
    const compliant_client client(*where_, {wire::signing_algorithm::aes_cmac}, all);
    EXPECT_EQ(client.compression().preferred(), algorithm::lz77_huffman);
    EXPECT_EQ(client.compression().capabilities().algorithms.size(), 4U);
    EXPECT_TRUE(client.compression().is_chained());
}

TEST_F(compression, is_not_negotiated_without_an_algorithm) {
    serve();
    const compliant_client client(*where_, {wire::signing_algorithm::aes_cmac}, {algorithm::lz4});
    EXPECT_FALSE(client.compression().is_on());
}

TEST_F(compression, is_off_by_default) {
    serve(adjust_to_default);
    const auto client = logged_on();
    EXPECT_FALSE(client->compression().is_on());
    client->send_frame(compressed(write_of(*client, text_of(1000)), agreement({algorithm::lz77}, false)));
    EXPECT_TRUE(client->is_rejected());
}

TEST_F(compression, closes_the_connection_of_a_client_of_an_older_dialect) {
    serve();
    compliant_client client(*where_);
    EXPECT_EQ(client.log_on("u", "p"), nt_status::success);
    const auto echo = client.encoded(command::echo, wire::echo_args{});
    client.send_frame(compressed(echo, agreement({algorithm::lz77}, false)));
    EXPECT_TRUE(client.is_rejected());
}

TEST_F(compression, of_shares_is_announced_in_3_1_1_if_the_server_supports_it) {
    const auto path = wire::utf16_of("\\\\s\\files");
    const wire::tree_connect_args args{.path = std::as_bytes(std::span(*path))};
    const auto is_announced_to = [&](compliant_client& client) {
        const auto said = client.call(command::tree_connect, args);
        EXPECT_EQ(said.status(), nt_status::success);
        const auto reply = wire::decode_tree_connect_reply(said.message());
        return reply and wire::has(reply->flags, wire::share_flags::compress_data);
    };
    serve();
    {
        const auto client = logged_on({});
        client->sign(true);
        EXPECT_TRUE(is_announced_to(*client));
        compliant_client older(*where_, 2);
        EXPECT_EQ(older.log_on("u", "p"), nt_status::success);
        EXPECT_FALSE(is_announced_to(older));
    }
    where_->stop();
    serve(adjust_to_default);
    const auto client = logged_on();
    client->sign(true);
    EXPECT_FALSE(is_announced_to(*client));
}

TEST_F(compression, of_requests_works_with_each_algorithm_chained_and_unchained) {
    serve();
    for (const bool is_chained : {false, true}) {
        for (const algorithm one : {algorithm::lznt1, algorithm::lz77, algorithm::lz77_huffman}) {
            for (const std::size_t head_bytes : {0U, 112U}) {
                const auto client = logged_on();
                const std::string text = std::string(100, 'x') + text_of(2000) + std::string(500, ' ');
                const message_bytes message = write_of(*client, text);
                client->send_frame(
                    compressed(message, agreement({one, algorithm::pattern_v1}, is_chained), head_bytes));
                EXPECT_EQ(content(*client), text) << static_cast<int>(one) << is_chained << head_bytes;
            }
        }
    }
}

TEST_F(compression, follows_the_signature_of_a_request) {
    serve();
    const auto client = logged_on();
    client->sign(true);
    client->send_frame(compressed(write_of(*client, text_of(1000)), client->compression()));
    EXPECT_EQ(content(*client), text_of(1000));
    message_bytes changed = write_of(*client, text_of(2000));
    changed.back() = std::byte{'!'};
    client->send_frame(compressed(changed, client->compression()));
    EXPECT_EQ(content(*client), text_of(1000));
}

TEST_F(compression, gives_all_requests_of_a_compound) {
    serve();
    const auto client = logged_on();
    message_bytes both = client->encoded(command::echo, wire::echo_args{});
    both.resize((both.size() + 7) / 8 * 8);
    const le32 next(static_cast<std::uint32_t>(both.size()));
    std::memcpy(both.data() + wire::header_next_command_offset, &next, sizeof next);
    const message_bytes second = write_of(*client, text_of(1000));
    both.insert(both.end(), second.begin(), second.end());
    client->send_frame(compressed(both, client->compression()));
    EXPECT_EQ(content(*client), text_of(1000));
}

TEST_F(compression, makes_a_large_write_of_a_small_frame) {
    serve();
    const auto client = logged_on();
    for (int i = 0; i != 8; ++i)
        (void)client->call(command::echo, wire::echo_args{});  // for credits
    const std::uint32_t data_bytes = 1U << 20;
    const message_bytes head = write_head(*client, data_bytes);
    const auto total = static_cast<std::uint32_t>(head.size() + data_bytes);
    client->send_frame(
        frame_builder(total).put_element(algorithm::none, head.size()).put_bytes(head).put_run(data_bytes));
    EXPECT_EQ(content(*client), std::string(10'000, 'x'));
}

TEST_F(compression, beyond_the_largest_transfer_closes_the_connection) {
    serve();
    constexpr std::uint32_t segment_max = (8U << 20) + 16 + 256;
    const auto echo_of = [](compliant_client& client, std::uint32_t bytes) {
        const message_bytes head = client.encoded(command::echo, wire::echo_args{});
        return frame_builder(bytes)
            .put_element(algorithm::none, head.size())
            .put_bytes(head)
            .put_run(bytes - static_cast<std::uint32_t>(head.size()));
    };
    const auto longest = logged_on();
    longest->send_frame(echo_of(*longest, segment_max));
    EXPECT_FALSE(longest->is_rejected());
    const auto longer = logged_on();
    longer->send_frame(echo_of(*longer, segment_max + 1));
    EXPECT_TRUE(longer->is_rejected());
    expect_rejected(frame_builder(~0U).put_run(~0U));
    expect_rejected(frame_builder(~0U).put_unchained(algorithm::lz77, ~0U));
    expect_rejected(frame_builder(16).put_unchained(algorithm::lz77, 1000));
}

TEST_F(compression, before_a_session_is_limited_to_short_messages) {
    serve();
    compliant_client client(*where_, {wire::signing_algorithm::aes_cmac}, all);
    const message_bytes echo = client.encoded(command::echo, wire::echo_args{});
    const auto data_bytes = static_cast<std::uint32_t>(128U << 10);
    client.send_frame(frame_builder(static_cast<std::uint32_t>(echo.size() + data_bytes))
                          .put_element(algorithm::none, echo.size())
                          .put_bytes(echo)
                          .put_run(data_bytes));
    EXPECT_TRUE(client.is_rejected());
}

// One client must not keep the loop from the others by frames that are short on the network.
TEST_F(compression, of_many_short_frames_leaves_turns_to_others) {
    serve();
    const auto other = logged_on();
    const auto sender = logged_on();
    sender->credits_wanted = 512;
    constexpr unsigned frames = 100;
    while (sender->credits() < 2 * frames)
        (void)sender->call(command::echo, wire::echo_args{});
    // Each reads a byte, and has a megabyte after it, which nothing looks at.
    constexpr std::uint32_t run_bytes = 1U << 20;
    std::vector<frame_builder> made;
    for (unsigned i = 0; i != frames; ++i) {
        const message_bytes read =
            sender->encoded(command::read, wire::read_args{.file = file_, .length_bytes = 1});
        made.emplace_back(static_cast<std::uint32_t>(read.size()) + run_bytes)
            .put_element(algorithm::none, read.size())
            .put_bytes(read)
            .put_run(run_bytes);
    }
    ASSERT_EQ(sender->call(command::write, wire::write_args{.file = file_, .data = view("x")}).status(),
              nt_status::success);
    const auto reads = [this] {
        return where_->server->context().loops().front()->data.counted.of(server::read_path::copied).requests;
    };
    const std::uint64_t before = reads();
    sender->send_frames(std::vector<bytes_view>(made.begin(), made.end()));
    EXPECT_EQ(other->call(command::echo, wire::echo_args{}).status(), nt_status::success);
    EXPECT_LT(reads() - before, frames);
    (void)sender->call(command::echo, wire::echo_args{});
    EXPECT_EQ(reads() - before, frames);
}

// Reads of one file in one frame, with their data, and how many compressed frames brought them.
TEST_F(compression, covers_no_more_bytes_of_a_compound_than_of_a_read) {
    serve();
    const auto client = logged_on();
    const std::string text = text_of(700'000);
    for (int i = 0; i != 4; ++i)
        (void)client->call(command::echo, wire::echo_args{});
    for (std::size_t at = 0; at < text.size(); at += 2000) {
        const std::string part = text.substr(at, 2000);
        const wire::write_args args{.file = file_, .offset_bytes = at, .data = view(part)};
        EXPECT_EQ(client->call(command::write, args).status(), nt_status::success);
    }
    for (const auto& [bytes, is_compressed] : {std::pair(100'000U, true), std::pair(700'000U, false)}) {
        const unsigned before = client->compressed_frames();
        client->charge = 11;
        client->begin_compound();
        const wire::read_args args{
            .file = file_, .length_bytes = bytes, .flags = wire::read_flags::request_compressed};
        const std::array ids{client->send(command::read, args), client->send(command::read, args)};
        client->end_compound();
        for (const std::uint64_t id : ids) {
            const auto said = client->answer_to(id);
            ASSERT_EQ(said.status(), nt_status::success);
            const bytes_view data = wire::decode_read_reply(said.message())->data;
            EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(data.data()), data.size()),
                      std::string_view(text).substr(0, bytes));
        }
        EXPECT_EQ(client->compressed_frames() - before, is_compressed ? 1U : 0U) << bytes;
    }
}

TEST_F(compression, in_another_compression_closes_the_connection) {
    serve();
    const auto client = logged_on();
    const auto unchained = agreement({algorithm::lz77}, false);
    message_bytes inner = compressed(write_of(*client, text_of(3500)), unchained);
    // So that the inner one shrinks again.
    inner.insert(inner.end(), 4000, std::byte{0});
    client->send_frame(compressed(inner, unchained));
    EXPECT_TRUE(client->is_rejected());
}

TEST_F(compression, of_another_protocol_closes_the_connection) {
    serve();
    for (const int first : {0xff, 0xfd, 0xfc, 0x00}) {
        const auto client = logged_on();
        message_bytes message = write_of(*client, text_of(3500));
        message[0] = std::byte(first);
        client->send_frame(compressed(message, client->compression()));
        EXPECT_TRUE(client->is_rejected());
    }
}

TEST_F(compression, that_is_damaged_closes_the_connection) {
    serve();
    for (const bool is_chained : {false, true}) {
        for (const std::size_t length : {4U, 8U, 15U, 16U, 40U, 200U}) {
            const auto client = logged_on();
            const message_bytes frame =
                compressed(write_of(*client, text_of(3500)), agreement({algorithm::lz77}, is_chained));
            client->send_frame(*bytes_view(frame).first(length));
            EXPECT_TRUE(client->is_rejected()) << length;
        }
    }
}

TEST_F(compression, that_announces_another_size_closes_the_connection) {
    serve();
    for (const int difference : {-1, 1}) {
        const auto client = logged_on();
        message_bytes frame =
            compressed(write_of(*client, text_of(3500)), agreement({algorithm::lz77}, false));
        const auto announced = bytes_view(frame).take_at<le32>(4)->value();
        const le32 other(announced + static_cast<std::uint32_t>(difference));
        std::memcpy(frame.data() + 4, &other, sizeof other);
        client->send_frame(frame);
        EXPECT_TRUE(client->is_rejected());
    }
}

TEST_F(compression, in_a_chain_without_progress_closes_the_connection) {
    serve();
    for (const unsigned empty : {0U, 1U, 2U}) {
        const auto client = logged_on();
        const message_bytes echo = client->encoded(command::echo, wire::echo_args{});
        frame_builder frame(static_cast<std::uint32_t>(echo.size() + 100));
        frame.put_element(algorithm::none, echo.size()).put_bytes(echo);
        if (empty == 1) frame.put_run(0);
        if (empty == 2) frame.put_element(algorithm::none, 0);
        client->send_frame(frame.put_run(100));
        EXPECT_EQ(client->is_rejected(), empty != 0) << empty;
    }
}

TEST_F(compression, by_an_algorithm_that_was_not_negotiated_closes_the_connection) {
    serve();
    const auto client = logged_on({algorithm::lznt1});
    client->send_frame(compressed(write_of(*client, text_of(3500)), agreement({algorithm::lz77}, false)));
    EXPECT_TRUE(client->is_rejected());
}

}  // namespace
}  // namespace sluice::smb_simulation
