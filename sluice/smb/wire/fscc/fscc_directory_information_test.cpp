#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"

namespace sluice::smb::wire {
namespace {

using testing::field_source;
using testing::text_of;

using form = file_information_class;

struct form_facts {
    form which;
    std::size_t fixed_bytes;
    bool has_short_name;
};

// The sizes are those of the specification's tables.
constexpr form_facts every_form[] = {{form::directory, 64, false},
                                     {form::full_directory, 68, false},
                                     {form::both_directory, 94, true},
                                     {form::names, 12, false},
                                     {form::id_both_directory, 104, true},
                                     {form::id_full_directory, 80, false},
                                     {form::id_extd_directory, 88, false},
                                     {form::id_extd_both_directory, 114, true},
                                     {form::id_64_extd_directory, 80, false},
                                     {form::id_64_extd_both_directory, 106, true},
                                     {form::id_all_extd_directory, 96, false},
                                     {form::id_all_extd_both_directory, 122, true}};

directory_entry_fields random_fields(field_source& from) {
    directory_entry_fields fields{.file_index = from.u32(),
                                  .created = filetime(from.u64()),
                                  .accessed = filetime(from.u64()),
                                  .written = filetime(from.u64()),
                                  .changed = filetime(from.u64()),
                                  .end_of_file = from.u64(),
                                  .allocation_bytes = from.u64(),
                                  .attributes = file_attributes(from.u32()),
                                  .ea_bytes = 0,
                                  .reparse_tag = 0,
                                  .file_number = from.u64(),
                                  .file_number_128_bits = from.bytes<16>()};
    (has(fields.attributes, file_attributes::reparse_point) ? fields.reparse_tag : fields.ea_bytes) =
        from.u32();
    return fields;
}

// Returns the fields that a form can contain.
directory_entry_fields as_carried(form which, directory_entry_fields fields) {
    if (which == form::names) return {.file_index = fields.file_index};
    if (which == form::directory) fields.ea_bytes = fields.reparse_tag = 0;
    const bool number = which == form::id_both_directory or which == form::id_full_directory or
                        which == form::id_64_extd_directory or which == form::id_64_extd_both_directory or
                        which == form::id_all_extd_directory or which == form::id_all_extd_both_directory;
    const bool number_128 = which == form::id_extd_directory or which == form::id_extd_both_directory or
                            which == form::id_all_extd_directory or which == form::id_all_extd_both_directory;
    if (!number) fields.file_number = 0;
    if (!number_128) fields.file_number_128_bits = {};
    return fields;
}

TEST(directory_information, entries_of_every_form_round_trip) {
    field_source from(1);
    for (const form_facts& facts : every_form) {
        EXPECT_EQ(has_short_names(facts.which), facts.has_short_name);
        for (int round = 0; round < 30; ++round) {
            std::vector<std::byte> room(2048);
            directory_entry_writer writer(room, facts.which);
            std::vector<directory_entry_fields> sent;
            std::vector<std::string> names;
            for (std::size_t left = from.below(6); left != 0; --left) {
                sent.push_back(random_fields(from));
                names.push_back(from.name());
                ASSERT_EQ(
                    writer.put({.fields = sent.back(), .name = names.back(), .short_name = "SHORT~1.TXT"}),
                    entry_outcome::written);
            }
            directory_entry_reader reader(writer.bytes(), facts.which);
            for (std::size_t i = 0; i < sent.size(); ++i) {
                const auto entry = reader.next();
                ASSERT_TRUE(entry and *entry);
                EXPECT_TRUE((*entry)->fields == as_carried(facts.which, sent[i]));
                EXPECT_EQ(text_of((*entry)->name_utf16), names[i]);
                EXPECT_EQ(text_of((*entry)->short_name_utf16), facts.has_short_name ? "SHORT~1.TXT" : "");
            }
            EXPECT_FALSE(reader.next()->has_value());
        }
    }
}

TEST(directory_information, each_form_has_the_size_of_its_table_and_entries_begin_at_multiples_of_8) {
    for (const form_facts& facts : every_form) {
        std::vector<std::byte> room(1024);
        directory_entry_writer writer(room, facts.which);
        ASSERT_EQ(writer.put({.name = "a"}), entry_outcome::written);
        EXPECT_EQ(writer.bytes().size(), facts.fixed_bytes + 2);
        const std::size_t aligned = (facts.fixed_bytes + 2 + 7) / 8 * 8;
        ASSERT_EQ(writer.put({.name = "b"}), entry_outcome::written);
        EXPECT_EQ(writer.bytes().size(), aligned + facts.fixed_bytes + 2);
        EXPECT_EQ(writer.bytes().take<le32>()->value(), aligned);
    }
}

TEST(directory_information, an_entry_that_does_not_fit_is_not_started) {
    for (const form_facts& facts : every_form) {
        for (std::size_t size = 0; size < 2 * facts.fixed_bytes + 24; ++size) {
            std::vector<std::byte> room(size);
            directory_entry_writer writer(room, facts.which);
            std::size_t fitted = 0;
            while (writer.put({.name = "abc"}) == entry_outcome::written)
                ++fitted;
            EXPECT_EQ(writer.count(), fitted);
            directory_entry_reader reader(writer.bytes(), facts.which);
            std::size_t found = 0;
            for (auto entry = reader.next(); entry and *entry; entry = reader.next())
                ++found;
            EXPECT_EQ(found, fitted);
            EXPECT_EQ(fitted == 0, size < facts.fixed_bytes + 6);
        }
    }
}

TEST(directory_information, bad_names_and_full_buffers_have_different_results) {
    std::vector<std::byte> room(1024);
    directory_entry_writer writer(room, form::both_directory);
    EXPECT_EQ(writer.put({.name = "\xFF"}), entry_outcome::bad_text);
    EXPECT_EQ(writer.put({.name = "n", .short_name = "THIRTEEN.UNIT"}), entry_outcome::bad_text);
    EXPECT_EQ(writer.count(), 0u);
}

TEST(directory_information, a_reparse_tag_is_in_the_field_of_the_attributes_size) {
    std::vector<std::byte> room(256);
    directory_entry_writer writer(room, form::full_directory);
    ASSERT_EQ(writer.put({.fields = {.attributes = file_attributes::reparse_point, .reparse_tag = 0xA000000C},
                          .name = "link"}),
              entry_outcome::written);
    EXPECT_EQ(bytes_view(writer.bytes()).take_at<le32>(64)->value(), 0xA000000Cu);
}

TEST(directory_information, wrong_lengths_are_rejected) {
    std::vector<std::byte> room(256);
    directory_entry_writer writer(room, form::both_directory);
    ASSERT_EQ(writer.put({.name = "name", .short_name = "N"}), entry_outcome::written);
    const std::vector<std::byte> good(writer.bytes().begin(), writer.bytes().end());
    const auto error_with = [&](std::size_t offset, unsigned value) {
        std::vector<std::byte> bytes = good;
        bytes[offset] = static_cast<std::byte>(value);
        return directory_entry_reader(bytes, form::both_directory).next().error();
    };
    EXPECT_EQ(error_with(60, 200), decode_error::range_outside_message);
    EXPECT_EQ(error_with(60, 3), decode_error::bad_text);
    EXPECT_EQ(error_with(68, 25), decode_error::range_outside_message);
    EXPECT_EQ(error_with(68, 1), decode_error::bad_text);
    EXPECT_EQ(directory_entry_reader(*bytes_view(good).first(93), form::both_directory).next().error(),
              decode_error::truncated);
}

TEST(directory_information, recognises_the_classes_that_are_forms) {
    for (const form_facts& facts : every_form)
        EXPECT_TRUE(is_directory_form(facts.which));
    EXPECT_FALSE(is_directory_form(form::basic));
    EXPECT_FALSE(is_directory_form(form(200)));
}

}  // namespace
}  // namespace sluice::smb::wire
