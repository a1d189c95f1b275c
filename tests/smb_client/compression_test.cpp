// Compression ([MS-SMB2] 3.2.5.1.1.2, 3.3.5.12) between the real client and the real server: data
// come back unchanged, and fewer bytes are sent if that is worthwhile.

#include <functional>
#include <random>

#include "sluice/smb/wire/file/write.hpp"
#include "tests/smb_client/relay.hpp"
#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the client under test
using bytes = std::vector<std::byte>;

bytes text_of(std::size_t size) {
    std::string text;
    for (int i = 0; text.size() < size; ++i)
        text += "line " + std::to_string(i / 3) + " in a file\n";
    const auto all = std::as_bytes(std::span(text)).first(size);
    return {all.begin(), all.end()};
}

bytes random_of(std::size_t size) {
    std::mt19937 random(1);
    bytes made(size);
    for (std::byte& each : made)
        each = std::byte(random() & 0xff);
    return made;
}

void compress(smb::server::server_configuration& of) {
    of.compresses = true;
}

// A client that has a file open, and the frames that the server sends.
struct with_file {
    explicit with_file(rig& in, connection_options how = {.server_name = "server", .compresses = true})
        : over(*in.loop, in.connect(), [this](bytes& frame) { record(frame); }),
          client(in, std::move(how), over.take_clients_end()) {
        EXPECT_FALSE(client.error) << client.error->message();
        auto opened =
            in.wait_for(client.tree->open("f", {.access = smb::wire::file_all_access,
                                                .disposition = smb::wire::create_disposition::open_if}));
        EXPECT_TRUE(opened);
        file = opened->release();
    }
    bytes read(std::size_t size, std::uint64_t offset = 0) {
        bytes into(size);
        received = sent_plain = sent_compressed = sent_sealed = 0;
        const auto got = client.where.wait_for(file->co_read(mutable_bytes(into), offset));
        EXPECT_TRUE(got) << (got ? std::string() : got.error().message());
        into.resize(got.value_or(0));
        return into;
    }
    // Returns how many bytes the client has sent.
    std::size_t write(const bytes& data) {
        const std::size_t before = over.sent_by_client();
        const auto written = client.where.wait_for(file->co_write(data, 0, smb::wire::write_flags::none));
        EXPECT_TRUE(written) << (written ? std::string() : written.error().message());
        EXPECT_EQ(written.value_or(0), data.size());
        return over.sent_by_client() - before;
    }

    // For the last READ.
    std::size_t received = 0;  // bytes
    std::size_t sent_plain = 0;
    std::size_t sent_compressed = 0;
    std::size_t sent_sealed = 0;
    std::function<void(bytes&)> edit;

private:
    void record(bytes& frame) {
        if (edit) edit(frame);
        received += frame.size();
        const auto kind = smb::wire::kind_of_frame(frame);
        sent_plain += kind == smb::wire::frame_kind::smb2;
        sent_compressed += kind == smb::wire::frame_kind::compressed;
        sent_sealed += kind == smb::wire::frame_kind::encrypted;
    }

    relay over;

public:
    logged_on client;
    std::unique_ptr<remote_file> file;
};

constexpr std::size_t sizes[] = {200, 4096, 65'536, 300'000, 1U << 20};

// Writes and reads data of each size with a new open, because data that did not shrink keep the
// open from compression for a while.
void transfer(bytes (*made)(std::size_t), bool shrinks) {
    rig world(compress);
    for (const std::size_t size : sizes) {
        with_file subject(world);
        const bytes data = made(size);
        const std::size_t written = subject.write(data);
        if (size > 1000) EXPECT_EQ(written < size, shrinks) << size;  // not mostly header
        EXPECT_TRUE(subject.read(size) == data);
        EXPECT_EQ(subject.sent_compressed, shrinks ? 1U : 0U) << size;
        EXPECT_EQ(subject.received < size, shrinks);
    }
}

TEST(compression, of_text_returns_the_same_data_in_fewer_bytes) {
    transfer(text_of, true);
}

TEST(compression, of_random_data_is_omitted) {
    transfer(random_of, false);
}

TEST(compression, precedes_encryption_so_that_frames_are_short) {
    rig world(compress);
    with_file subject(world,
                      {.server_name = "server", .encryption = encryption::required, .compresses = true});
    const bytes text = text_of(300'000);
    (void)subject.write(text);
    EXPECT_TRUE(subject.read(text.size()) == text);
    EXPECT_EQ(subject.sent_sealed, 1U);
    EXPECT_LT(subject.received, text.size() / 2);
}

TEST(compression, is_omitted_if_the_client_or_the_server_does_not_support_it) {
    rig without;
    with_file one(without);
    rig world(compress);
    with_file other(world, {.server_name = "server"});
    rig older(compress);
    with_file last(
        older, {.server_name = "server", .dialect_max = smb::wire::dialect::smb_3_0_2, .compresses = true});
    const bytes text = text_of(100'000);
    for (with_file* const each : {&one, &other, &last}) {
        EXPECT_FALSE(each->client.connection->agreed().compression.is_on());
        (void)each->write(text);
        EXPECT_TRUE(each->read(text.size()) == text);
        EXPECT_EQ(each->sent_plain, 1U);
    }
}

TEST(compression, works_at_the_end_of_a_file_and_is_omitted_for_short_data) {
    rig world(compress);
    with_file subject(world);
    const bytes text = text_of(5000);
    (void)subject.write(text);
    EXPECT_TRUE(subject.read(100) == text_of(100));
    EXPECT_EQ(subject.sent_plain, 1U) << "too short";
    const bytes rest = subject.read(10'000, 1000);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), text.begin() + 1000, text.end()));
    EXPECT_EQ(subject.sent_compressed, 1U);
    EXPECT_EQ(subject.read(10'000, 4950).size(), 50U);
    EXPECT_EQ(subject.read(10'000, 5000).size(), 0U);
}

TEST(compression, of_very_long_replies_is_omitted) {
    rig world(compress);
    with_file subject(world);
    const bytes text = text_of(2U << 20);
    (void)subject.write(text);
    EXPECT_TRUE(subject.read(text.size()) == text);
    EXPECT_EQ(subject.sent_plain, 1U);
}

TEST(compression, is_tried_again_after_some_reads_of_data_that_did_not_shrink) {
    rig world(compress);
    with_file subject(world);
    bytes data = random_of(65'536);
    const bytes text = text_of(65'536);
    data.insert(data.end(), text.begin(), text.end());
    (void)subject.write(data);
    (void)subject.read(65'536);
    EXPECT_EQ(subject.sent_plain, 1U);
    for (unsigned i = 0; i != smb::server::limits::compression_skips; ++i) {
        EXPECT_TRUE(subject.read(65'536, 65'536) == text);
        EXPECT_EQ(subject.sent_plain, 1U);
    }
    EXPECT_TRUE(subject.read(65'536, 65'536) == text);
    EXPECT_EQ(subject.sent_compressed, 1U);
}

TEST(compression, that_is_damaged_breaks_the_connection) {
    const bytes text = text_of(65'536);
    for (const std::size_t at : {4U, 8U, 10U, 12U, 18U}) {
        rig world(compress);
        with_file subject(world);
        (void)subject.write(text);
        subject.edit = [&](bytes& frame) {
            if (smb::wire::kind_of_frame(frame) == smb::wire::frame_kind::compressed)
                frame[at] ^= std::byte{0x41};
        };
        bytes into(text.size());
        const auto got = world.wait_for(subject.file->co_read(mutable_bytes(into), 0));
        EXPECT_FALSE(got) << at;
        EXPECT_TRUE(subject.client.connection->is_broken());
    }
}

TEST(compression, leaves_changes_of_a_reply_on_the_way_to_the_signature) {
    rig world(compress);
    with_file subject(world);
    const bytes text = text_of(65'536);
    (void)subject.write(text);
    bool is_valid = false;
    subject.edit = [&](bytes& frame) {
        if (smb::wire::kind_of_frame(frame) != smb::wire::frame_kind::compressed) return;
        // A literal: the last byte whose change leaves a message that can be decompressed.
        const auto& agreed = subject.client.connection->agreed().compression;
        bytes message(text.size() + 1000);
        for (std::size_t at = frame.size(); not is_valid and at-- > 100;) {
            frame[at] ^= std::byte{1};
            const auto size = smb::wire::decompressed_bytes(
                frame, agreed, smb::wire::compression_limits_for(message.size(), message.size()));
            is_valid = size and smb::wire::decompress_message(frame, agreed, std::span(message).first(*size));
            if (not is_valid) frame[at] ^= std::byte{1};
        }
    };
    bytes into(text.size());
    EXPECT_FALSE(world.wait_for(subject.file->co_read(mutable_bytes(into), 0)));
    EXPECT_TRUE(is_valid) << "the signature alone shows the change";
    EXPECT_TRUE(subject.client.connection->is_broken());
}

}  // namespace
}  // namespace sluice::smb_client_testing
