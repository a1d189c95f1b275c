#include "sluice/discovery/dns/dns_message.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/random.hpp"
#include "sluice/discovery/limits.hpp"

namespace sluice::discovery {
namespace {

bytes_view bytes_of_text(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
std::expected<dns_message, dns_error> decode(std::string_view text) {
    return decode_dns_message(bytes_of_text(text));
}
dns_name name(std::string_view dotted) {
    return dns_name::parse(dotted).value();
}
std::string header(int questions, int answers) {
    const auto two = [](int number) {
        return std::string{static_cast<char>(number >> 8), static_cast<char>(number)};
    };
    return std::string(4, '\0') + two(questions) + two(answers) + std::string(4, '\0');
}

TEST(dns_name, names_are_equal_if_only_the_case_of_ascii_letters_differs) {
    EXPECT_EQ(name("NAS.local"), name("nas.LOCAL"));
    EXPECT_NE(name("nas.local"), name("nas2.local"));
    EXPECT_NE(name("n\xc3\x84"), name("n\xc3\xa4"));
}

TEST(dns_name, an_empty_or_long_label_and_a_long_name_are_rejected) {
    EXPECT_FALSE(dns_name::parse("a..b"));
    EXPECT_TRUE(dns_name::parse(std::string(63, 'a')));
    EXPECT_FALSE(dns_name::parse(std::string(64, 'a')));
    dns_name longest;
    while (longest.append("1234567890"))
        ;
    EXPECT_LE(longest.wire().size(), limits::dns_name_bytes_max);
    EXPECT_FALSE(longest.append(name("1234567890")));
}

TEST(dns_name, a_label_is_shortened_at_a_character_to_make_room_for_a_suffix) {
    EXPECT_EQ(label_with_suffix("nas", "-2"), "nas-2");
    const std::string base = std::string(60, 'a') + "\xc3\xa4z";
    EXPECT_EQ(label_with_suffix(base, "-2"), std::string(60, 'a') + "-2");
    EXPECT_EQ(label_with_suffix(std::string(63, 'x'), " (10)").size(), 63U);
}

TEST(dns_message, a_compressed_name_is_expanded) {
    const std::string text = header(1, 1) + std::string("\3nas\5local\0\0\1\0\1", 15) +
                             std::string("\xc0\x0c\0\x0c\x80\1\0\0\0\x78\0\6\3far\xc0\x10", 18);
    const auto message = decode(text);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->questions.front().name, name("nas.local"));
    const dns_record& record = message->answers.front();
    EXPECT_EQ(record.name, name("nas.local"));
    EXPECT_TRUE(record.flushes_cache);
    EXPECT_EQ(record.ttl_seconds, 120U);
    EXPECT_EQ(record.data, name("far.local").wire());
}

TEST(dns_message, a_pointer_to_itself_forward_or_in_a_circle_is_an_error) {
    const std::string type_and_class("\0\1\0\1", 4);
    EXPECT_EQ(decode(header(1, 0) + "\xc0\x0c" + type_and_class).error(), dns_error::bad_name);
    EXPECT_EQ(decode(header(1, 0) + "\xc0\x20" + type_and_class).error(), dns_error::bad_name);
    EXPECT_EQ(decode(header(1, 0) + "\1a\xc0\x0c" + type_and_class).error(), dns_error::bad_name);
    EXPECT_EQ(decode(header(1, 0) +
                     "\x41"
                     "a" +
                     type_and_class)
                  .error(),
              dns_error::bad_name);
}

TEST(dns_message, a_long_chain_of_pointers_is_an_error) {
    // The data of the first record is the chain; the name of the second is the last pointer.
    const auto with_chain = [](std::size_t pointers) {
        std::string chain("\0", 1);
        const std::size_t begin = 12 + 11;
        for (std::size_t i = 0; i != pointers; ++i) {
            const std::size_t target = i == 0 ? begin : begin + 1 + 2 * (i - 1);
            chain += static_cast<char>(0xc0 | target >> 8);
            chain += static_cast<char>(target & 0xff);
        }
        std::string text = header(0, 2) + std::string("\0\xff\0\0\1\0\0\0\0", 9);
        text += static_cast<char>(chain.size() >> 8);
        text += static_cast<char>(chain.size() & 0xff);
        text += chain;
        const std::size_t last = begin + chain.size() - 2;
        text += static_cast<char>(0xc0 | last >> 8);
        text += static_cast<char>(last & 0xff);
        return text + std::string("\0\1\0\1\0\0\0\0\0\0", 10);
    };
    EXPECT_TRUE(decode(with_chain(limits::dns_pointers_max - 1)));
    EXPECT_EQ(decode(with_chain(limits::dns_pointers_max)).error(), dns_error::bad_name);
}

TEST(dns_message, more_entries_than_the_limits_are_rejected_before_they_are_read) {
    EXPECT_EQ(decode(header(129, 0)).error(), dns_error::too_many);
    EXPECT_EQ(decode(header(0, 513)).error(), dns_error::too_many);
    EXPECT_EQ(decode(header(128, 0)).error(), dns_error::truncated);
    EXPECT_EQ(decode(std::string(9001, '\0')).error(), dns_error::too_long);
    EXPECT_EQ(decode("short").error(), dns_error::truncated);
}

TEST(dns_message, data_that_ends_before_or_after_its_name_is_rejected) {
    const std::string head("\0\0\x0c\0\1\0\0\0\0", 9);
    EXPECT_EQ(decode(header(0, 1) + head + std::string("\0\3\1a\0\0", 6)).has_value(), true);
    EXPECT_EQ(decode(header(0, 1) + head + std::string("\0\4\1a\0\0", 6)).error(), dns_error::bad_data);
    EXPECT_EQ(decode(header(0, 1) + head + std::string("\0\5\1a\0", 5)).error(), dns_error::truncated);
}

dns_name random_name(random_source& random) {
    dns_name made;
    for (std::uint64_t labels = random.below(4); labels != 0; --labels) {
        std::string label;
        for (std::uint64_t length = 1 + random.below(9); length != 0; --length)
            label += static_cast<char>(random.below(3) + 'a');
        EXPECT_TRUE(made.append(label));
    }
    return made;
}

dns_record random_record(random_source& random) {
    dns_record record{.name = random_name(random),
                      .type = random.below(2) == 0 ? dns_type::ptr : dns_type::txt,
                      .flushes_cache = random.below(2) == 0,
                      .ttl_seconds = static_cast<std::uint32_t>(random.next_u64())};
    record.data =
        record.type == dns_type::ptr ? random_name(random).wire() : std::string(random.below(20), 'x');
    return record;
}

TEST(dns_message, an_encoded_message_decodes_to_the_same_message) {
    seeded_random random(24);
    for (int round = 0; round != 500; ++round) {
        dns_message message{.id = static_cast<std::uint16_t>(random.next_u64()),
                            .flags = dns_message::is_response};
        for (std::uint64_t i = random.below(9); i != 0; --i)
            message.questions.push_back({.name = random_name(random), .wants_unicast = random.below(2) == 0});
        for (auto* const section : {&message.answers, &message.authorities, &message.additionals})
            for (std::uint64_t i = random.below(9); i != 0; --i)
                section->push_back(random_record(random));
        const auto encoded = encode_dns_message(message, limits::dns_message_bytes_max);
        ASSERT_TRUE(encoded);
        const auto decoded = decode(*encoded);
        ASSERT_TRUE(decoded);
        EXPECT_EQ(*decoded, message) << round;
    }
}

TEST(dns_writer, an_entry_that_does_not_fit_changes_nothing) {
    dns_writer writer(1, 0, 40);
    ASSERT_TRUE(writer.add(dns_question{.name = name("nas.local"), .type = dns_type::any}));
    const std::string before = writer.bytes();
    EXPECT_FALSE(
        writer.add(dns_writer::section::answers,
                   {.name = name("nas.local"), .type = dns_type::txt, .data = std::string(30, 'x')}));
    EXPECT_EQ(writer.bytes(), before);
    EXPECT_TRUE(decode(before));
}

}  // namespace
}  // namespace sluice::discovery
