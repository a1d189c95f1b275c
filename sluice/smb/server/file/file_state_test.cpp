#include "sluice/smb/server/file/file_state.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {
namespace {

constexpr vfs::file_key stream_key(std::uint64_t stream) noexcept {
    return {.volume = 1, .file = 2, .stream = stream};
}

TEST(file_table, finds_a_renamed_stream_under_its_new_key_only) {
    file_table files;
    const auto one = files.of(stream_key(10));
    files.change_key(file_section(*one), *one, stream_key(11));
    EXPECT_EQ(files.find(stream_key(10)), nullptr);
    EXPECT_EQ(files.find(stream_key(11)), one);
    EXPECT_EQ(files.streams_of(stream_key(0)).size(), 1U);
}

TEST(file_table, keeps_the_state_of_a_replaced_stream_apart_from_that_of_its_successor) {
    file_table files;
    auto replaced = files.of(stream_key(10));
    const auto successor = files.of(stream_key(11));
    files.change_key(file_section(*successor), *successor, stream_key(10));
    EXPECT_EQ(files.find(stream_key(10)), successor);
    EXPECT_EQ(files.find(stream_key(11)), nullptr);
    EXPECT_EQ(files.size(), 2U) << "the stream and its file";
    EXPECT_EQ(files.streams_of(stream_key(0)).size(), 2U) << "either keeps the file";

    // By an open that outlived the replacement.
    files.change_key(file_section(*replaced), *replaced, stream_key(12));
    EXPECT_EQ(files.find(stream_key(10)), successor);
    EXPECT_EQ(files.find(stream_key(12)), replaced);

    files.change_key(file_section(*replaced), *replaced, stream_key(11));
    files.change_key(file_section(*successor), *successor, stream_key(11));
    replaced.reset();
    EXPECT_EQ(files.find(stream_key(11)), successor) << "a state that ends removes only its own entry";
    EXPECT_EQ(files.size(), 2U) << "the stream and its file";
}

TEST(file_table, state_of_a_stream_holds_that_of_its_file) {
    file_table files;
    const auto stream = files.of(stream_key(10));
    EXPECT_EQ(stream->base, files.find(stream_key(0)));
    EXPECT_EQ(stream->base->base, nullptr);
}

TEST(file_table, does_not_mix_the_streams_of_a_forgotten_state_with_those_of_its_successor) {
    file_table files;
    const auto stale = files.of(stream_key(10));
    const auto before = stale->base;
    files.forget(file_section(*before), *before);
    const auto file = files.of(stream_key(0));
    ASSERT_NE(file, before);
    const auto stream = files.of(stream_key(11));
    const file_section held(*file);
    const auto found = files.streams_of(held, *file);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front(), stream);
    EXPECT_FALSE(files.has_open_streams(held, *file));
}

TEST(file_table, gives_a_stream_that_takes_a_free_name_again_a_state_of_its_own) {
    file_table files;
    const auto renamed = files.of(stream_key(10));
    files.change_key(file_section(*renamed), *renamed, stream_key(11));
    const auto fresh = files.of(stream_key(10));
    EXPECT_NE(fresh, renamed);
    EXPECT_EQ(files.size(), 3U) << "two streams and their file";
}

TEST(file_table, gives_the_next_file_with_the_key_of_a_removed_one_a_state_of_its_own) {
    file_table files;
    auto removed = files.of(stream_key(0));
    files.forget(file_section(*removed), *removed);
    const auto next = files.of(stream_key(0));
    EXPECT_NE(next, removed);
    removed.reset();
    EXPECT_EQ(files.find(stream_key(0)), next) << "a state that ends removes only its own entry";
}

constexpr vfs::file_key plain_file = stream_key(0);

TEST(file_table, counts_a_file_that_has_lost_its_last_open_after_a_change) {
    file_table files;
    const auto file = files.of(plain_file);
    open first;
    open second;
    file->add(file_section(*file), first);
    file->add(file_section(*file), second);
    file->begin_change();
    file->end_change();
    const std::uint64_t before = files.changed_files();
    file->remove(file_section(*file), first);
    EXPECT_EQ(files.changed_files(), before) << "the state exists, and shows the change";
    EXPECT_TRUE(file->may_have_changed(file_section(*file)));
    file->remove(file_section(*file), second);
    EXPECT_NE(files.changed_files(), before);
}

TEST(file_table, counts_a_file_whose_change_ends_after_its_last_open) {
    file_table files;
    const auto file = files.of(plain_file);
    open one;
    file->add(file_section(*file), one);
    file->begin_change();
    file->remove(file_section(*file), one);
    const std::uint64_t while_it_changes = files.changed_files();
    file->end_change();
    EXPECT_NE(files.changed_files(), while_it_changes);
}

TEST(file_table, counts_a_file_that_has_lost_its_last_open_after_a_write) {
    file_table files;
    const auto file = files.of(plain_file);
    open one;
    file->add(file_section(*file), one);
    file->begin_write(file_section(*file));
    file->end_write(file_section(*file));
    const std::uint64_t before = files.changed_files();
    file->remove(file_section(*file), one);
    EXPECT_NE(files.changed_files(), before);
}

TEST(file_table, does_not_count_an_unchanged_file) {
    file_table files;
    const auto file = files.of(plain_file);
    open one;
    const std::uint64_t before = files.changed_files();
    file->add(file_section(*file), one);
    file->remove(file_section(*file), one);
    EXPECT_EQ(files.changed_files(), before);
    EXPECT_FALSE(file->may_have_changed(file_section(*file)));
}

}  // namespace
}  // namespace sluice::smb::server
