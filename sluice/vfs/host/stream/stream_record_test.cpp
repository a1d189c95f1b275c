#include "sluice/vfs/host/stream/stream_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::vfs {
namespace {

stream_id some_id() {
    predictable_secrets_for_simulation source(7);
    return stream_id::create(source);
}

TEST(stream_record, is_decoded_as_it_was_encoded) {
    for (const auto kind : {stream_record_kind::reference, stream_record_kind::mark}) {
        const stream_record record{
            .kind = kind, .owner = 0x01020304, .id = some_id(), .inode = 0x1122334455667788, .born = 99};
        EXPECT_EQ(decode_stream_record(encode(record)), record);
    }
}

TEST(stream_record, has_the_documented_layout) {
    stream_record record{.kind = stream_record_kind::mark,
                         .owner = 0x01020304,
                         .inode = 0x1122334455667788,
                         .born = 0x0102030405060708};
    std::ranges::fill(record.id.bytes, std::byte{0xab});
    const auto bytes = encode(record);
    const std::array<unsigned char, stream_record_bytes> expected{
        1,    2,    0,    0,    4,    3,    2,    1,    0xab, 0xab, 0xab, 0xab, 0xab, 0xab,
        0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0x88, 0x77, 0x66, 0x55,
        0x44, 0x33, 0x22, 0x11, 8,    7,    6,    5,    4,    3,    2,    1};
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(expected)), bytes));
}

TEST(stream_record, of_another_length_version_or_kind_is_none) {
    const auto valid = encode({.id = some_id()});
    EXPECT_FALSE(decode_stream_record(bytes_view(std::span(valid).first(stream_record_bytes - 1))));
    std::vector<std::byte> longer(valid.begin(), valid.end());
    longer.push_back(std::byte{});
    EXPECT_FALSE(decode_stream_record(bytes_view(longer)));
    for (const std::size_t where : {0U, 1U}) {
        auto changed = valid;
        changed[where] = std::byte{3};
        EXPECT_FALSE(decode_stream_record(changed)) << where;
    }
    EXPECT_FALSE(decode_stream_record({}));
}

TEST(stream_id, has_a_text_that_only_it_has) {
    const stream_id id = some_id();
    const std::string text = id.text();
    EXPECT_EQ(text.size(), 32U);
    EXPECT_EQ(stream_id::parse(text), id);
    EXPECT_FALSE(stream_id::parse("ABCDEF" + text.substr(6)));
    EXPECT_FALSE(stream_id::parse(text.substr(1)));
    EXPECT_FALSE(stream_id::parse(text + "0"));
    EXPECT_FALSE(stream_id::parse("g" + text.substr(1)));
    EXPECT_FALSE(stream_id::parse(""));
}

TEST(stream_id, differs_from_that_of_every_other_file) {
    system_random source;
    EXPECT_NE(stream_id::create(source), stream_id::create(source));
}

}  // namespace
}  // namespace sluice::vfs
