#include "sluice/smb/server/journal/handle_record.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_testing.hpp"

namespace sluice::smb::server {
namespace {

std::vector<std::byte> encoded(const handle_record& record) {
    std::vector<std::byte> room(journal_format::content_bytes_max);
    byte_writer writer(room);
    encode(writer, record);
    EXPECT_TRUE(writer.finish().has_value());
    room.resize(writer.position());
    return room;
}

handle_record small_record() {
    handle_record record;
    record.open_number = 7;
    record.owner = "anna";
    record.share = "data";
    record.path = "a.txt";
    return record;
}

// A record whose every part is as large as possible.
class largest_record {
public:
    largest_record() {
        record.open_number = 1;
        record.path = record.other_path = path_;
        record.stream = stream_;
        record.owner = record.domain = account_;
        record.share = share_;
        record.locks = locks_;
    }

    handle_record record;

private:
    std::string path_ = std::string(handle_record::path_bytes_max, 'p');
    std::string stream_ = std::string(handle_record::stream_bytes_max, 's');
    std::string account_ = std::string(handle_record::account_bytes_max, 'a');
    std::string share_ = std::string(handle_record::share_bytes_max, 'x');
    std::vector<recorded_lock> locks_ = std::vector<recorded_lock>(handle_record::locks_max);
};

TEST(handle_record, is_decoded_as_it_was_encoded) {
    std::vector<recorded_lock> locks;
    for (std::uint64_t seed = 1; seed != 500; ++seed) {
        const owned_record owned(seed);
        ASSERT_TRUE(owned.record.fits());
        const auto bytes = encoded(owned.record);
        const auto decoded = decode_handle_record(bytes, locks);
        ASSERT_TRUE(decoded.has_value()) << seed;
        EXPECT_TRUE(*decoded == owned.record) << seed;
        EXPECT_EQ(encoded(*decoded), bytes);
    }
}

TEST(handle_record, as_large_as_its_bounds_allow_fits_a_copy) {
    const largest_record largest;
    const auto bytes = encoded(largest.record);
    EXPECT_EQ(bytes.size(), 5527U);
    EXPECT_LE(bytes.size(), journal_format::content_bytes_max);
    std::vector<recorded_lock> locks;
    const auto decoded = decode_handle_record(bytes, locks);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_TRUE(*decoded == largest.record);
}

TEST(handle_record, is_not_decoded_from_a_part_or_with_bytes_after_it) {
    std::vector<recorded_lock> locks;
    for (std::uint64_t seed = 1; seed != 8; ++seed) {
        auto bytes = encoded(owned_record(seed).record);
        for (std::size_t length = 0; length != bytes.size(); ++length)
            ASSERT_FALSE(decode_handle_record(bytes_view(bytes.data(), length), locks)) << seed;
        bytes.push_back(std::byte{0});
        EXPECT_FALSE(decode_handle_record(bytes, locks));
    }
}

TEST(handle_record, decoded_from_changed_bytes_fits_and_has_one_form) {
    std::vector<recorded_lock> locks;
    std::size_t accepted = 0;
    for (std::uint64_t seed = 1; seed != 8; ++seed) {
        const auto good = encoded(owned_record(seed).record);
        for (std::size_t i = 0; i != good.size() * 8; ++i) {
            auto bytes = good;
            bytes[i / 8] ^= std::byte{1} << i % 8;
            const auto decoded = decode_handle_record(bytes, locks);
            if (not decoded) continue;
            ++accepted;
            ASSERT_TRUE(decoded->fits());
            ASSERT_EQ(encoded(*decoded), bytes);
        }
    }
    EXPECT_GT(accepted, 0U);
}

TEST(handle_record, beyond_a_bound_does_not_fit) {
    EXPECT_TRUE(small_record().fits());
    const std::string long_text(handle_record::path_bytes_max + 1, 'p');
    const std::vector<recorded_lock> locks(handle_record::locks_max + 1);
    const auto changed = [](auto change) {
        handle_record record = small_record();
        change(record);
        return record.fits();
    };
    EXPECT_FALSE(changed([](auto& record) { record.open_number = 0; }));
    EXPECT_FALSE(changed([](auto& record) { record.path = ""; }));
    EXPECT_FALSE(changed([](auto& record) { record.share = ""; }));
    EXPECT_FALSE(changed([](auto& record) { record.owner = ""; }));
    EXPECT_FALSE(changed([&](auto& record) { record.path = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.other_path = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.stream = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.owner = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.domain = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.share = long_text; }));
    EXPECT_FALSE(changed([&](auto& record) { record.locks = locks; }));
    EXPECT_FALSE(changed([](auto& record) { record.file.image = 1; }));
    EXPECT_FALSE(changed([](auto& record) { record.lock_sequences[3] = 16; }));
    EXPECT_FALSE(changed([](auto& record) { record.timeout = std::chrono::milliseconds(-1); }));
    EXPECT_FALSE(changed([](auto& record) { record.timeout = std::chrono::hours(1200); }));
    EXPECT_FALSE(changed([](auto& record) { record.app_version.emplace(); }));
    EXPECT_FALSE(changed([](auto& record) { record.caching.epoch = 1; }));
    EXPECT_FALSE(changed([](auto& record) { record.disposition = wire::create_disposition{6}; }));
    EXPECT_FALSE(changed([](auto& record) { record.action = wire::create_action{4}; }));
}

TEST(handle_record, with_a_lock_beyond_the_last_byte_does_not_fit) {
    handle_record record = small_record();
    recorded_lock lock{.offset = ~0ULL, .length = 1};
    record.locks = std::span(&lock, 1);
    EXPECT_TRUE(record.fits());
    lock.length = 2;
    EXPECT_FALSE(record.fits());
    lock.length = 0;
    EXPECT_TRUE(record.fits());
}

}  // namespace
}  // namespace sluice::smb::server
