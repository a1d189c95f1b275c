#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sluice/vfs/volume_testing.hpp"

// The contract of data, attributes and streams, for every kind of volume.

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::byte> bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

class volume_data : public volume_test {
protected:
    [[nodiscard]] node_ptr stream(node& of, std::string_view name) {
        auto made = of.attached()->open_stream({.name = name, .create = true});
        EXPECT_EQ(code(made), 0) << name;
        EXPECT_EQ(code((*made)->data()->open_data(writes)), 0);
        return std::move(*made);
    }
};
SLUICE_TEST_EVERY_VOLUME(volume_data);

TEST_P(volume_data, transfers_need_data_to_be_opened_for_them) {
    const auto file = make_file("f");
    EXPECT_EQ(code(read(*file)), EBADF);
    EXPECT_EQ(code(write(*file, "x")), EBADF);
    EXPECT_EQ(code(file->data()->truncate(1)), EBADF);
    EXPECT_EQ(file->data()->host_file(), nullptr);
    const auto found = at("f");
    ASSERT_EQ(code(found->data()->open_data(reads)), 0);
    EXPECT_EQ(code(read(*found)), 0);
    EXPECT_EQ(code(write(*found, "x")), EBADF);
    ASSERT_EQ(code(found->data()->open_data(writes)), 0) << "widened";
    EXPECT_EQ(code(write(*found, "x")), 0);
    EXPECT_EQ(read(*found).value(), "x");
    EXPECT_EQ(code(open_data(*make_directory("d"), reads)), EISDIR);
}

TEST_P(volume_data, a_node_found_with_its_status_needs_open_data_too) {
    make_file("f", "some");
    // The first lookup, and a repeated one.
    for (int i = 0; i != 2; ++i) {
        auto found = on().find_with_status("f", follow_links::yes, writes, name_match::any_case);
        ASSERT_EQ(code(found), 0);
        EXPECT_EQ(found->status.kind, node_kind::file);
        EXPECT_EQ(found->status.size_bytes, 4U);
        EXPECT_EQ(found->status.id, found->node->status().value().id);
        EXPECT_EQ(code(read(*found->node)), EBADF);
        EXPECT_EQ(code(write(*found->node, "x")), EBADF);
        EXPECT_EQ(found->node->data()->host_file(), nullptr);
        ASSERT_EQ(code(found->node->data()->open_data(reads)), 0);
        EXPECT_EQ(read(*found->node).value(), "some");
        EXPECT_EQ(code(write(*found->node, "x")), EBADF);
    }
    EXPECT_EQ(code(on().find_with_status("missing", follow_links::yes, reads, name_match::any_case)), ENOENT);
}

TEST_P(volume_data, reads_end_at_the_end_of_the_file_and_writes_extend_it) {
    const auto file = make_file("f", "0123456789");
    EXPECT_EQ(read(*file, 4).value(), "456789");
    EXPECT_EQ(read(*file, 4, 2).value(), "45");
    EXPECT_EQ(read(*file, 10).value(), "");
    EXPECT_EQ(read(*file, 1U << 30).value(), "");
    ASSERT_EQ(code(write(*file, "end", 12)), 0);
    EXPECT_EQ(read(*file, 8).value(), std::string_view("89\0\0end", 7));
    EXPECT_EQ(file->status().value().size_bytes, 15U);
    ASSERT_EQ(code(file->data()->truncate(3)), 0);
    EXPECT_EQ(read(*file).value(), "012");
    ASSERT_EQ(code(file->data()->truncate(5)), 0);
    EXPECT_EQ(read(*file).value(), std::string_view("012\0\0", 5));
    EXPECT_EQ(code(io::sync_wait(*multiplexer_, file->co_flush())), 0);
    EXPECT_EQ(code(io::sync_wait(*multiplexer_, at("")->co_flush())), 0);
}

TEST_P(volume_data, zeroing_and_reserving_do_not_change_the_length) {
    const std::string full(256 * 1024, 'x');
    const auto file = make_file("f", full);
    ASSERT_EQ(code(file->data()->zero(64 * 1024, 128 * 1024, true)), 0);
    ASSERT_EQ(code(file->data()->zero(0, 10, false)), 0);
    ASSERT_EQ(code(file->data()->zero(256 * 1024 - 1, 100, false)), 0);
    ASSERT_EQ(code(file->data()->allocate(1 << 20)), 0);
    const auto status = file->status().value();
    EXPECT_EQ(status.size_bytes, full.size());
    EXPECT_EQ(read(*file, 8, 4).value(), std::string_view("\0\0xx", 4));
    EXPECT_EQ(read(*file, 64 * 1024 - 1, 2).value(), std::string_view("x\0", 2));
    EXPECT_EQ(read(*file, 192 * 1024 - 1, 2).value(), std::string_view("\0x", 2));
    EXPECT_EQ(read(*file, 256 * 1024 - 2, 9).value(), std::string_view("x\0", 2));
}

TEST_P(volume_data, allocated_ranges_exclude_holes) {
    SLUICE_NEEDS(has_sparse_files);
    const auto file = make_file("f", "begin");
    ASSERT_EQ(code(file->data()->truncate(1 << 20)), 0);
    ASSERT_EQ(code(write(*file, "middle", 512 * 1024)), 0);
    std::array<io::extent_pair, 8> storage;
    const auto all = file->data()->allocated_ranges(0, 1 << 20, storage).value();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].offset, 0U);
    EXPECT_LE(all[1].offset, 512U * 1024);
    EXPECT_LT(all[0].length + all[1].length, 512U * 1024);
    const auto part = file->data()->allocated_ranges(256 * 1024, 64 * 1024, storage).value();
    EXPECT_TRUE(part.empty());
}

TEST_P(volume_data, cloning_copies_up_to_the_end_of_the_source) {
    const auto from = make_file("from", "0123456789");
    const auto to = make_file("to", "abc");
    EXPECT_EQ(from->data()->clone_to(*to, {.offset = 2, .length = 4}, 1, false).value(), 4U);
    EXPECT_EQ(read(*to).value(), "a2345");
    EXPECT_EQ(from->data()->clone_to(*to, {.offset = 8, .length = 100}, 0, false).value(), 2U);
    EXPECT_EQ(read(*to).value(), "89345");
    EXPECT_EQ(from->data()->clone_to(*to, {.offset = 50, .length = 100}, 0, false).value(), 0U);
    const auto shared = from->data()->clone_to(*to, {.offset = 0, .length = 10}, 0, true);
    EXPECT_TRUE(shared or not on().features().has_block_sharing or code(shared) == EINVAL);
    if (not on().features().has_block_sharing) EXPECT_EQ(code(shared), EOPNOTSUPP);
}

TEST_P(volume_data, new_files_have_the_requested_attributes) {
    const auto before = make_file("plain")->status().value();
    EXPECT_EQ(before.dos, dos_attributes::none);
    const auto wanted = dos_attributes::archive | dos_attributes::hidden;
    ASSERT_EQ(code(on().create("f", {.dos = wanted})), 0);
    EXPECT_EQ(at("f")->status().value().dos, wanted);
    ASSERT_EQ(code(on().create("archived", {.dos = dos_attributes::archive})), 0);
    EXPECT_EQ(at("archived")->status().value().dos, dos_attributes::archive);
    ASSERT_EQ(code(on().create("d", {.kind = node_kind::directory, .dos = dos_attributes::system})), 0);
    const auto listed = list("");
    EXPECT_EQ(listed.at("f").dos, wanted);
    EXPECT_EQ(listed.at("archived").dos, dos_attributes::archive);
    EXPECT_EQ(listed.at("d").dos, dos_attributes::system);
    EXPECT_EQ(listed.at("plain").dos, dos_attributes::none);
}

TEST_P(volume_data, times_and_attributes_are_changed_one_by_one) {
    const auto file = make_file("f", "x");
    const auto before = file->status().value();
    const time_point long_ago{std::chrono::sys_days{std::chrono::year(1999) / 12 / 31}};
    ASSERT_EQ(code(file->change({.modified = long_ago})), 0);
    ASSERT_EQ(code(file->change({.born = long_ago - 1h})), 0);
    ASSERT_EQ(code(file->change({.dos = dos_attributes::system})), 0);
    if (on().features().has_sparse_files) ASSERT_EQ(code(file->change({.is_sparse = true})), 0);
    ASSERT_EQ(code(file->change({})), 0);
    const auto after = at("f")->status().value();
    EXPECT_EQ(after.modified, long_ago);
    EXPECT_EQ(after.born, long_ago - 1h);
    EXPECT_EQ(after.accessed, before.accessed);
    EXPECT_EQ(after.dos, dos_attributes::system);
    EXPECT_EQ(after.is_sparse, on().features().has_sparse_files);
    EXPECT_GE(after.changed, before.changed);
    EXPECT_EQ(list("").at("f").born, long_ago - 1h);
    // Some volumes store only the day.
    ASSERT_EQ(code(at("f")->change({.accessed = long_ago + 5h})), 0);
    const time_point accessed = at("f")->status().value().accessed;
    EXPECT_TRUE(accessed == long_ago + 5h or accessed == long_ago) << accessed.time_since_epoch().count();
}

TEST_P(volume_data, a_file_is_marked_as_compressed_and_again_as_not_compressed) {
    SLUICE_NEEDS(has_compression);
    const auto file = make_file("f", "data");
    EXPECT_FALSE(file->status().value().is_compressed);
    ASSERT_EQ(code(file->change({.is_compressed = true})), 0);
    EXPECT_TRUE(at("f")->status().value().is_compressed);
    EXPECT_TRUE(list("").at("f").is_compressed);
    ASSERT_EQ(code(at("f")->change({.is_compressed = false})), 0);
    EXPECT_FALSE(file->status().value().is_compressed);
    EXPECT_EQ(content("f"), "data");
}

TEST_P(volume_data, names_in_a_compressed_directory_are_compressed) {
    SLUICE_NEEDS(has_compression);
    ASSERT_EQ(code(make_directory("d")->change({.is_compressed = true})), 0);
    EXPECT_TRUE(make_file("d/f")->status().value().is_compressed);
    EXPECT_TRUE(make_directory("d/e")->status().value().is_compressed);
    EXPECT_FALSE(make_file("f")->status().value().is_compressed);
}

TEST_P(volume_data, a_stream_is_compressed_as_its_file_is) {
    SLUICE_NEEDS(has_compression);
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f");
    ASSERT_EQ(code(stream(*file, "s")->change({.is_compressed = true})), 0);
    EXPECT_TRUE(file->status().value().is_compressed);
    EXPECT_TRUE(stream(*file, "s")->status().value().is_compressed);
}

TEST_P(volume_data, a_volume_without_compression_refuses_it) {
    if (on().features().has_compression) GTEST_SKIP() << "the volume supports it";
    EXPECT_EQ(code(make_file("f")->change({.is_compressed = true})), EOPNOTSUPP);
    EXPECT_EQ(code(at("f")->change({.is_compressed = false})), 0);
}

TEST_P(volume_data, modification_is_an_access_unless_the_time_of_access_was_set) {
    SLUICE_NEEDS(has_exact_times);
    const auto file = make_file("f", "x");
    const time_point long_ago{std::chrono::sys_days{std::chrono::year(1999) / 12 / 31}};
    ASSERT_EQ(code(file->change({.accessed = long_ago, .modified = long_ago})), 0);
    ASSERT_EQ(code(write(*file, "y")), 0);
    auto after = at("f")->status().value();
    EXPECT_GT(after.modified, long_ago);
    EXPECT_EQ(after.accessed, after.modified);
    ASSERT_EQ(code(file->change({.accessed = long_ago})), 0);
    after = at("f")->status().value();
    EXPECT_EQ(after.accessed, long_ago);
    EXPECT_EQ(list("").at("f").accessed, long_ago);
    EXPECT_GT(after.modified, long_ago);
    ASSERT_EQ(code(file->change({.modified = after.modified + 24h})), 0);
    EXPECT_EQ(at("f")->status().value().accessed, long_ago) << "it stays if another time is set";
}

TEST_P(volume_data, change_time_that_was_set_stays_until_the_next_change) {
    SLUICE_NEEDS(has_exact_times);
    const time_point long_ago{std::chrono::sys_days{std::chrono::year(1999) / 12 / 31}};
    const auto file = make_file("f", "x");
    ASSERT_EQ(code(file->change({.changed = long_ago, .dos = dos_attributes::hidden})), 0);
    EXPECT_EQ(at("f")->status().value().changed, long_ago);
    EXPECT_EQ(list("").at("f").changed, long_ago);
    EXPECT_EQ(at("f")->status().value().dos, dos_attributes::hidden);
    // Host volumes count changes within a few ticks of the kernel's clock as one.
    std::this_thread::sleep_for(40ms);
    ASSERT_EQ(code(file->change({.dos = dos_attributes::system})), 0);
    EXPECT_GT(at("f")->status().value().changed, long_ago);
    EXPECT_GT(list("").at("f").changed, long_ago);
}

TEST_P(volume_data, times_after_2262_are_kept) {
    SLUICE_NEEDS(has_exact_times);
    const time_point far{std::chrono::sys_days{std::chrono::year(9999) / 12 / 31}};
    const auto file = make_file("f", "x");
    ASSERT_EQ(code(file->change({.born = far, .accessed = far + 2h, .modified = far + 1h, .changed = far})),
              0);
    const auto after = at("f")->status().value();
    EXPECT_EQ(after.born, far);
    EXPECT_EQ(after.modified, far + 1h);
    EXPECT_EQ(after.accessed, far + 2h);
    EXPECT_EQ(after.changed, far);
    EXPECT_EQ(list("").at("f").modified, far + 1h);
    ASSERT_EQ(code(write(*file, "y")), 0);
    EXPECT_LT(at("f")->status().value().modified, far);
}

// ext4 begins in 1901.
TEST_P(volume_data, times_that_the_file_system_cannot_store_are_kept) {
    SLUICE_NEEDS(has_exact_times);
    for (const int year : {1650, 1800}) {
        const time_point early{std::chrono::sys_days{std::chrono::year(year) / 12 / 31}};
        const auto file = make_file("f", "x");
        ASSERT_EQ(code(file->change({.accessed = early + 2h, .modified = early + 1h})), 0);
        ASSERT_EQ(code(file->change({.dos = dos_attributes::hidden})), 0);
        const auto after = at("f")->status().value();
        EXPECT_EQ(after.modified, early + 1h) << year;
        EXPECT_EQ(after.accessed, early + 2h) << year;
        EXPECT_EQ(list("").at("f").modified, early + 1h) << year;
        ASSERT_EQ(code(write(*file, "y")), 0);
        EXPECT_GT(at("f")->status().value().modified, early + 2h) << year;
        ASSERT_EQ(code(file->names()->remove()), 0);
    }
}

TEST_P(volume_data, files_and_directories_have_streams) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f", "main");
    const auto first = stream(*file, "First");
    ASSERT_EQ(code(write(*first, "0123456789")), 0);
    ASSERT_EQ(code(write(*first, "end", 12)), 0);
    EXPECT_EQ(read(*first, 8).value(), std::string_view("89\0\0end", 7));
    EXPECT_EQ(first->stream_name(), "First");
    EXPECT_EQ(first->path(), "f");
    EXPECT_EQ(first->status().value().size_bytes, 15U);
    EXPECT_EQ(first->status().value().id, file->key().file);
    EXPECT_NE(first->key(), file->key());
    EXPECT_EQ(first->key().file, file->key().file);
    const auto infos = at("f")->attached()->streams().value();
    ASSERT_EQ(infos.size(), 1U);
    EXPECT_EQ(infos[0].name, "First");
    EXPECT_EQ(infos[0].size_bytes, 15U);
    EXPECT_EQ(first->attached()->streams().value().size(), 1U) << "those of the file";
    EXPECT_EQ(first->attached()->file_status().value().size_bytes, 4U);
    EXPECT_EQ(code(file->attached()->file_status()), EOPNOTSUPP);
    ASSERT_EQ(code(first->data()->truncate(2)), 0);
    EXPECT_EQ(read(*first).value(), "01");
    ASSERT_EQ(code(first->data()->truncate(3)), 0);
    ASSERT_EQ(code(first->data()->zero(0, 1, true)), 0);
    EXPECT_EQ(read(*first).value(), std::string_view("\0"
                                                     "1\0",
                                                     3));
    EXPECT_EQ(content("f"), "main");
    const auto of_directory = stream(*make_directory("d"), "s");
    EXPECT_EQ(code(write(*of_directory, "x")), 0);
    EXPECT_EQ(of_directory->attached()->file_status().value().kind, node_kind::directory);
    EXPECT_EQ(code(first->attached()->open_stream({.name = "x", .create = true})), EOPNOTSUPP);
}

TEST_P(volume_data, streams_can_be_large) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f", "main");
    const std::string large(100'000, 'x');
    const auto one = stream(*file, "Large");
    ASSERT_EQ(code(write(*one, large)), 0);
    ASSERT_EQ(code(write(*one, "end", large.size())), 0);
    EXPECT_EQ(read(*one, 0, 200'000).value(), large + "end");
    EXPECT_EQ(one->status().value().size_bytes, large.size() + 3);
    EXPECT_EQ(one->status().value().id, file->key().file);
    EXPECT_FALSE(one->status().value().is_sparse);
    EXPECT_EQ(io::sync_wait(*multiplexer_, one->co_flush()).has_value(), true);
    ASSERT_EQ(code(file->names()->rename("g", when_taken::refuse)), 0);
    const auto again = at("g")->attached()->open_stream({.name = "LARGE"}).value();
    EXPECT_EQ(again->key(), one->key());
    ASSERT_EQ(code(again->data()->open_data(reads)), 0);
    EXPECT_EQ(read(*again, large.size()).value(), "end");
    ASSERT_EQ(code(one->names()->rename("other", when_taken::refuse)), 0);
    ASSERT_EQ(code(one->data()->truncate(5)), 0);
    const auto infos = at("g")->attached()->streams().value();
    ASSERT_EQ(infos.size(), 1U);
    EXPECT_EQ(infos[0].name, "other");
    EXPECT_EQ(infos[0].size_bytes, 5U);
    EXPECT_EQ(content("g"), "main");
    EXPECT_THAT(names(""), ElementsAre("g"));
    ASSERT_EQ(code(one->names()->remove()), 0);
    EXPECT_THAT(at("g")->attached()->streams().value(), IsEmpty());
}

TEST_P(volume_data, streams_are_found_in_any_case_and_shared_between_their_nodes) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f");
    EXPECT_EQ(code(file->attached()->open_stream({.name = "s"})), ENOENT);
    const auto one = stream(*file, "Stream");
    const auto two = at("F")->attached()->open_stream({.name = "STREAM"}).value();
    EXPECT_EQ(two->key(), one->key());
    EXPECT_EQ(two->stream_name(), "Stream");
    ASSERT_EQ(code(two->data()->open_data(reads)), 0);
    ASSERT_EQ(code(write(*one, "seen by both")), 0);
    EXPECT_EQ(read(*two).value(), "seen by both");
    EXPECT_EQ(code(write(*two, "x")), EBADF);
    EXPECT_EQ(code(file->attached()->open_stream({.name = "sTREAM", .create = true, .exclusive = true})),
              EEXIST);
    EXPECT_EQ(code(file->attached()->open_stream({.name = "sTREAM", .create = true})), 0);
    for (const char* name : {"", "a:b", "a/b", "a\\b"})
        EXPECT_EQ(code(file->attached()->open_stream({.name = name, .create = true})), EILSEQ) << name;
}

TEST_P(volume_data, a_hole_in_a_stream_reads_as_zeros) {
    SLUICE_NEEDS(has_streams);
    const auto one = stream(*make_file("f"), "s");
    ASSERT_EQ(code(one->data()->open_data(reads)), 0);
    ASSERT_EQ(code(write(*one, std::string(100, 'x'))), 0);
    ASSERT_EQ(code(one->data()->truncate(0)), 0);
    ASSERT_EQ(code(write(*one, "end", 60)), 0);
    EXPECT_EQ(read(*one).value(), std::string(60, '\0') + "end");
}

TEST_P(volume_data, a_removed_stream_is_missing_for_all_nodes) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f");
    const auto one = stream(*file, "s");
    const auto two = stream(*file, "s");
    ASSERT_EQ(code(write(*one, "content")), 0);
    ASSERT_EQ(code(one->names()->remove()), 0);
    EXPECT_EQ(code(read(*two)), ENOENT);
    EXPECT_EQ(code(write(*two, "x")), ENOENT);
    EXPECT_EQ(code(two->names()->remove()), ENOENT);
    EXPECT_THAT(file->attached()->streams().value(), IsEmpty());
}

TEST_P(volume_data, a_stream_can_be_renamed) {
    SLUICE_NEEDS(has_streams);
    const auto file = make_file("f");
    const auto one = stream(*file, "one");
    ASSERT_EQ(code(write(*one, "content")), 0);
    const auto two = stream(*file, "two");
    EXPECT_EQ(code(one->names()->rename("TWO", when_taken::refuse)), EEXIST);
    ASSERT_EQ(code(one->names()->rename("ONE", when_taken::refuse)), 0) << "only the case";
    ASSERT_EQ(code(one->names()->rename("TWO", when_taken::replace)), 0);
    EXPECT_EQ(one->stream_name(), "TWO");
    EXPECT_EQ(read(*one).value(), "content");
    const auto left = file->attached()->streams().value();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].name, "TWO");
}

TEST_P(volume_data, a_stream_without_space_reports_an_error) {
    SLUICE_NEEDS(has_streams);
    const auto one = stream(*make_file("f"), "s");
    EXPECT_THAT(code(write(*one, "x", INT64_MAX)), AnyOf(ENOSPC, EFBIG));
    EXPECT_THAT(code(one->data()->truncate(1ULL << 63)), AnyOf(ENOSPC, EFBIG));
    EXPECT_EQ(one->status().value().size_bytes, 0U);
}

TEST_P(volume_data, extended_attributes_keep_the_case_of_their_first_name) {
    SLUICE_NEEDS(has_extended_attributes);
    const auto file = make_file("f");
    ASSERT_EQ(code(file->attached()->set_extended_attribute("Comment", bytes("one"))), 0);
    ASSERT_EQ(code(file->attached()->set_extended_attribute("COMMENT", bytes("two"))), 0);
    ASSERT_EQ(code(file->attached()->set_extended_attribute("Other", bytes("x"))), 0);
    ASSERT_EQ(code(file->attached()->set_extended_attribute("missing", {})), 0);
    auto found = at("f")->attached()->extended_attributes().value();
    std::ranges::sort(found, {}, &extended_attribute::name);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].name, "Comment");
    EXPECT_EQ(found[0].value, bytes("two"));
    ASSERT_EQ(code(file->attached()->set_extended_attribute("comment", {})), 0);
    EXPECT_EQ(file->attached()->extended_attributes().value().size(), 1U);
    EXPECT_THAT(file->attached()->streams().value(), IsEmpty());
}

TEST_P(volume_data, the_security_descriptor_is_stored_unchanged) {
    SLUICE_NEEDS(has_security);
    const auto file = make_file("f");
    EXPECT_THAT(file->attached()->security().value(), IsEmpty());
    ASSERT_EQ(code(file->attached()->set_security(bytes("\x01\x02\x03"))), 0);
    EXPECT_EQ(at("f")->attached()->security().value(), bytes("\x01\x02\x03"));
    EXPECT_THAT(file->attached()->extended_attributes().value(), IsEmpty());
    EXPECT_THAT(file->attached()->streams().value(), IsEmpty());
    ASSERT_EQ(code(file->attached()->set_security({})), 0);
    EXPECT_THAT(file->attached()->security().value(), IsEmpty());
}

TEST_P(volume_data, a_security_descriptor_is_found_whatever_change_time_clients_have_set) {
    SLUICE_NEEDS(has_security);
    const time_point long_ago{std::chrono::sys_days{std::chrono::year(1999) / 12 / 31}};
    const auto file = make_file("f");
    const auto security_with_set_time = [&] {
        EXPECT_EQ(code(file->change({.changed = long_ago})), 0);
        metadata status = file->status().value();
        status.has_security.reset();
        return file->attached()->security_as_of(status).value();
    };
    EXPECT_THAT(security_with_set_time(), IsEmpty());
    ASSERT_EQ(code(file->attached()->set_security(bytes("\x01\x02"))), 0);
    EXPECT_EQ(security_with_set_time(), bytes("\x01\x02"));
}

TEST_P(volume_data, a_listing_has_the_security_descriptors_of_its_names) {
    SLUICE_NEEDS(has_security);
    SLUICE_NEEDS(has_symlinks);
    const std::vector<std::byte> longer(3000, std::byte{7});
    ASSERT_EQ(code(make_file("f")->attached()->set_security(bytes("\x01\x02"))), 0);
    ASSERT_EQ(code(make_directory("d")->attached()->set_security(longer)), 0);
    make_file("without");
    make_link("link", "f");
    make_link("nowhere", "missing");
    const auto root = at("");
    const auto listing = root->children()->list().value();
    std::map<std::string, std::vector<std::byte>> found;
    while (const listed_name* next = listing->next().value())
        found[std::string(next->name)] = listing->security().value();
    const std::map<std::string, std::vector<std::byte>> wanted{{"f", bytes("\x01\x02")},
                                                               {"d", longer},
                                                               {"without", {}},
                                                               {"link", bytes("\x01\x02")},
                                                               {"nowhere", {}}};
    EXPECT_EQ(found, wanted);
}

TEST_P(volume_data, a_volume_reports_its_free_space) {
    const auto space = on().space().value();
    EXPECT_GT(space.total_bytes, 0U);
    EXPECT_LE(space.available_bytes, space.total_bytes);
    EXPECT_FALSE(on().identity().label.empty());
    EXPECT_FALSE(on().features().is_read_only);
}

}  // namespace
}  // namespace sluice::vfs
