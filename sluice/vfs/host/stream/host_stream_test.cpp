#include <sys/stat.h>
#include <unistd.h>

#include "sluice/vfs/host/stream/stream_testing.hpp"

// Streams of a host directory: in attributes, in files, and on the way from one to the other.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using host_streams = stream_test;

TEST_F(host_streams, stay_attributes_as_long_as_they_are_small) {
    put("f", "small", std::string(2048, 's'));
    EXPECT_THAT(stored(), IsEmpty());
    EXPECT_FALSE(scratch.exists(".sluice-streams"));
    EXPECT_EQ(content("f", "small"), std::string(2048, 's'));
}

TEST_F(host_streams, become_files_when_they_grow_and_keep_their_content) {
    const auto one = put("f", "Stream", "begin");
    ASSERT_EQ(code(write(*one, "end", 5000)), 0);
    EXPECT_THAT(stored(), ElementsAre("=Stream"));
    EXPECT_EQ(read(*one), "begin" + std::string(4995, '\0') + "end");
    EXPECT_EQ(content("f", "STREAM"), read(*one));
    EXPECT_THAT(streams("f"), ElementsAre("Stream 5003"));
    const metadata status = one->status().value();
    EXPECT_EQ(status.size_bytes, 5003U);
    EXPECT_EQ(status.id, at("f")->key().file);
    EXPECT_GT(status.allocated_bytes, 0U);
    EXPECT_EQ(one->status().value().kind, node_kind::file);
}

TEST_F(host_streams, grow_by_truncation_and_by_reservation_too) {
    ASSERT_EQ(code(stream("f", "set")->data()->truncate(100'000)), 0);
    ASSERT_EQ(code(stream("f", "reserved")->data()->allocate(50'000)), 0);
    EXPECT_THAT(streams("f"), ElementsAre("reserved 0", "set 100000"));
    EXPECT_THAT(stored(), ElementsAre("=reserved", "=set"));
    EXPECT_GE(stream("f", "reserved")->status().value().allocated_bytes, 50'000U);
}

TEST_F(host_streams, may_wait_if_they_have_been_large) {
    put("f", "s", "small");
    EXPECT_FALSE(at("f")->attached()->streams_may_wait());
    put("f", "s", large);
    EXPECT_TRUE(at("f")->attached()->streams_may_wait());
}

TEST_F(host_streams, stay_files_when_they_shrink) {
    const auto one = put("f", "s", large);
    ASSERT_EQ(code(one->data()->truncate(3)), 0);
    ASSERT_EQ(code(write(*one, "x", 1)), 0);
    EXPECT_EQ(content("f", "s"), "LxL");
    EXPECT_THAT(stored(), ElementsAre("=s"));
}

TEST_F(host_streams, become_files_also_on_directories) {
    ASSERT_EQ(code(volume->create("d", {.kind = node_kind::directory})), 0);
    put("d", "s", large);
    put("", "root stream", large);
    EXPECT_EQ(content("d", "s"), large);
    EXPECT_EQ(content("", "root stream"), large);
    EXPECT_THAT(stored(), ElementsAre("=root stream", "=s"));
}

TEST_F(host_streams, may_have_any_name_that_a_client_may_use) {
    for (const char* name : {".", "..", "lost", "=", "%2F", "with\nline", "\xc3\xa4\xc3\xb6"}) {
        put("f", name, large);
        EXPECT_EQ(content("f", name), large) << name;
    }
    EXPECT_THAT(streams("f"), SizeIs(7));
    EXPECT_EQ(code(at("f")->attached()->open_stream({.name = std::string(237, 'x'), .create = true})),
              ENAMETOOLONG);
}

TEST_F(host_streams, opened_before_they_grew_are_used_as_files_from_then_on) {
    const auto reader = put("f", "s", "old");
    const auto writer = stream("f", "S");
    EXPECT_FALSE(reader->data()->transfers_at_once());
    ASSERT_EQ(code(write(*writer, large)), 0);
    EXPECT_TRUE(writer->data()->transfers_at_once());
    EXPECT_EQ(read(*reader), large);
    EXPECT_TRUE(reader->data()->transfers_at_once());
    ASSERT_EQ(code(write(*reader, "new")), 0);
    EXPECT_EQ(read(*writer).substr(0, 4), "newL");
}

TEST_F(host_streams, can_be_many_although_attributes_have_little_room) {
    for (int i = 0; i != 40; ++i)
        put("f", "stream " + std::to_string(i), std::string(500, 'x'));
    reopen();
    EXPECT_THAT(streams("f"), SizeIs(40));
    for (int i = 0; i != 40; ++i)
        EXPECT_EQ(content("f", "stream " + std::to_string(i)), std::string(500, 'x')) << i;
}

TEST_F(host_streams, are_limited_in_number) {
    put("f", "s", large);
    const std::string directory = fs::relative(directory_of("f"), scratch.path()).string();
    for (std::size_t i = 1; i != limits::large_streams_per_file_max; ++i)
        scratch.write(directory + "/=" + std::to_string(i), "");
    EXPECT_EQ(code(write(*stream("f", "one more"), large)), ENOSPC);
    EXPECT_EQ(content("f", "one more"), "") << "small streams do not count";
    ASSERT_EQ(code(stream("f", "1")->names()->remove()), 0);
    EXPECT_EQ(code(write(*stream("f", "one more"), large)), 0);
    EXPECT_EQ(code(write(*stream("f", "s"), large)), 0) << "one of them";
}

TEST_F(host_streams, never_grow_out_of_their_attribute_on_a_loop) {
    const auto one = stream("f", "s");
    ASSERT_EQ(volume->domain().statistics().threads, 0U);
    ASSERT_EQ(code(write(*one, "small")), 0);
    EXPECT_EQ(volume->domain().statistics().threads, 1U) << "the attributes may be full";
}

TEST_F(host_streams, are_pinned_in_their_file_once_they_are_large) {
    const auto one = put("f", "s", "small");
    EXPECT_FALSE(one->data()->pins_extents());
    EXPECT_EQ(code(one->data()->pin_extents({.offset = 0, .length = 5}, 1)), EOPNOTSUPP);
    ASSERT_EQ(code(write(*one, large)), 0);
    EXPECT_TRUE(one->data()->pins_extents());
    const auto pinned = one->data()->pin_extents({.offset = 9000, .length = 5000}, 1).value();
    ASSERT_EQ(pinned.runs.size(), 1U);
    EXPECT_EQ(pinned.runs[0].length, 1000U);
}

TEST_F(host_streams, have_holes_of_their_own_if_they_are_sparse) {
    const auto one = put("f", "s", std::string(1U << 20, 'x'));
    EXPECT_FALSE(one->status().value().is_sparse);
    ASSERT_EQ(code(one->change({.is_sparse = true})), 0);
    EXPECT_TRUE(stream("f", "s")->status().value().is_sparse);
    EXPECT_FALSE(at("f")->status().value().is_sparse) << "the file";
    ASSERT_EQ(code(one->data()->zero(0, 512 << 10, true)), 0);
    EXPECT_LT(one->status().value().allocated_bytes, 1U << 20);
    std::array<io::extent_pair, 4> storage;
    const auto ranges = one->data()->allocated_ranges(0, 1U << 20, storage).value();
    ASSERT_EQ(ranges.size(), 1U);
    EXPECT_EQ(ranges[0].offset, 512U << 10);
    ASSERT_EQ(code(one->change({.is_sparse = false})), 0);
    EXPECT_FALSE(one->status().value().is_sparse);
}

TEST_F(host_streams, that_are_changed_change_the_time_of_their_file) {
    const auto one = put("f", "s", large);
    constexpr time_point long_ago{std::chrono::seconds(1'000'000'000)};
    ASSERT_EQ(code(at("f")->change({.modified = long_ago})), 0);
    ASSERT_EQ(code(stream("f", "s")->data()->truncate(5000)), 0);
    EXPECT_GT(at("f")->status().value().modified, long_ago);
}

TEST_F(host_streams, are_copied_in_every_combination_of_small_and_large) {
    const std::string small = "small";
    for (const std::string& source : {small, large}) {
        for (const std::string& target : {small, large}) {
            const auto from = put("f", "from", source);
            const auto to = put("f", "to", target);
            const auto copied = from->data()->clone_to(*to, {.offset = 0, .length = source.size()}, 0, false);
            EXPECT_EQ(copied.value(), source.size());
            EXPECT_EQ(content("f", "to").substr(0, source.size()), source);
            EXPECT_EQ(code(from->names()->remove()), 0);
            EXPECT_EQ(code(to->names()->remove()), 0);
        }
    }
    EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(host_streams, cannot_be_longer_than_any_file) {
    const auto one = stream("f", "s");
    EXPECT_EQ(code(write(*one, "x", INT64_MAX)), EFBIG);
    EXPECT_EQ(code(one->data()->truncate(1ULL << 63)), EFBIG);
    EXPECT_EQ(code(one->data()->allocate(1ULL << 63)), EFBIG);
    EXPECT_EQ(content("f", "s"), "");
}

// --- names

TEST_F(host_streams, are_removed_one_by_one) {
    put("f", "one", large);
    put("f", "two", large);
    const auto left = stream("f", "one");
    ASSERT_EQ(code(stream("f", "ONE")->names()->remove()), 0);
    EXPECT_THAT(streams("f"), ElementsAre("two 10000"));
    EXPECT_EQ(code(left->status()), ENOENT);
    EXPECT_EQ(code(left->names()->remove()), ENOENT);
    ASSERT_EQ(code(stream("f", "two")->names()->remove()), 0);
    EXPECT_FALSE(fs::exists(directory_of("f"))) << "no stream is left";
    put("f", "three", large);
    EXPECT_EQ(content("f", "three"), large) << "in a new directory";
}

TEST_F(host_streams, are_renamed_in_every_combination_of_small_and_large) {
    const std::string small = "small";
    for (const std::string& source : {small, large}) {
        for (const std::string& target : {small, large}) {
            SCOPED_TRACE(std::to_string(source.size()) + " to " + std::to_string(target.size()));
            const auto from = put("f", "from", source);
            put("f", "Target", target);
            EXPECT_EQ(code(from->names()->rename("TARGET", when_taken::refuse)), EEXIST);
            ASSERT_EQ(code(from->names()->rename("TARGET", when_taken::replace)), 0);
            EXPECT_EQ(from->stream_name(), "TARGET");
            EXPECT_THAT(streams("f"), ElementsAre("TARGET " + std::to_string(source.size())));
            EXPECT_EQ(read(*from), source);
            ASSERT_EQ(code(from->names()->rename("target", when_taken::refuse)), 0) << "only the case";
            EXPECT_EQ(content("f", "target"), source);
            EXPECT_THAT(streams("f"), SizeIs(1));
            ASSERT_EQ(code(from->names()->remove()), 0);
            EXPECT_THAT(stored(), IsEmpty());
        }
    }
}

TEST_F(host_streams, are_found_if_their_file_was_known_to_have_none) {
    const node_ptr known = at("f");
    const metadata before = known->status().value();
    scratch.write("g", "");
    put("g", "wait", "");
    while (at("g")->status().value().changed == before.changed)  // a tick of the kernel's clock
        put("g", "wait", "x");
    put("f", "s", large);
    ASSERT_EQ(code(known->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());
    EXPECT_THAT(lost(), ElementsAre("=s"));
}

// A rename that replaces a stream in another case, and is interrupted, leaves both spellings.
class host_streams_of_two_spellings : public stream_test {
protected:
    void leave_old() {
        const auto file = io::file_handle::open({}, scratch.path_of("f"), io::mode::write).value();
        const std::string old = "old";
        ASSERT_EQ(code(io::store_xattr(file, "user.sluice.stream.FOO", std::as_bytes(std::span(old)))), 0);
    }
};

TEST_F(host_streams_of_two_spellings, are_one_that_grows) {
    put("f", "foo", "new");
    leave_old();
    ASSERT_EQ(code(write(*stream("f", "foo"), large)), 0);
    EXPECT_EQ(content("f", "foo"), large);
    EXPECT_EQ(content("f", "FOO"), large);
    EXPECT_THAT(streams("f"), ElementsAre("foo 10000"));
}

TEST_F(host_streams_of_two_spellings, are_removed_together) {
    put("f", "foo", "new");
    leave_old();
    ASSERT_EQ(code(stream("f", "foo")->names()->remove()), 0);
    EXPECT_THAT(streams("f"), IsEmpty());
}

TEST_F(host_streams_of_two_spellings, are_replaced_together) {
    put("f", "foo", "new");
    leave_old();
    const auto from = put("f", "from", large);
    ASSERT_EQ(code(from->names()->rename("foo", when_taken::replace)), 0);
    EXPECT_EQ(content("f", "foo"), large);
    EXPECT_THAT(streams("f"), ElementsAre("foo 10000"));
}

TEST_F(host_streams_of_two_spellings, do_not_destroy_the_one_that_is_renamed) {
    const auto own = put("f", "Foo", large);
    leave_old();
    EXPECT_EQ(code(own->names()->rename("FOO", when_taken::replace)), 0);
    EXPECT_EQ(content("f", "foo"), large);
    EXPECT_THAT(streams("f"), ElementsAre("FOO 10000"));
}

TEST_F(host_streams, that_do_not_fit_into_attributes_under_two_names_are_renamed_as_files) {
    put("f", "source", std::string(1500, 's'));
    put("f", "Target", std::string(1000, 't'));
    put("f", "large", large);  // so that the file has a reference
    const auto file = at("f");
    const std::vector<std::byte> value(100);
    for (int i = 0; i != 64; ++i)
        if (not file->attached()->set_extended_attribute("filler" + std::to_string(i), value)) break;
    const auto source = stream("f", "source");
    ASSERT_EQ(code(source->names()->rename("target", when_taken::replace)), 0);
    EXPECT_EQ(content("f", "target"), std::string(1500, 's'));
    EXPECT_THAT(streams("f"), ElementsAre("large 10000", "target 1500"));
}

TEST_F(host_streams, survive_operations_that_fail_for_lack_of_space) {
    const auto source = put("f", "source", std::string(900, 's'));
    const auto target = put("f", "Target", std::string(400, 't'));
    const auto file = at("f");
    // Not even the reference fits.
    int filled = 0;
    for (std::size_t bytes = 64; bytes != 0; bytes /= 2)
        for (int i = 0; i != 200; ++i) {
            const std::vector<std::byte> value(bytes);
            const std::string name = std::to_string(bytes) + '-' + std::to_string(i);
            filled = code(file->attached()->set_extended_attribute(name, value));
            if (filled != 0) break;
        }
    if (filled != ENOSPC) GTEST_SKIP() << "this file system has no limit for attributes";
    EXPECT_EQ(code(source->names()->rename("target", when_taken::replace)), ENOSPC);
    EXPECT_EQ(code(write(*source, large)), ENOSPC);
    EXPECT_EQ(code(file->attached()->open_stream({.name = "third", .create = true})), ENOSPC);
    EXPECT_EQ(content("f", "source"), std::string(900, 's'));
    EXPECT_EQ(content("f", "Target"), std::string(400, 't'));
    EXPECT_EQ(target->stream_name(), "Target");
    EXPECT_THAT(streams("f"), SizeIs(2));
}

// --- their file

TEST_F(host_streams, follow_their_file_through_renames_by_any_program) {
    ASSERT_EQ(code(volume->create("d", {.kind = node_kind::directory})), 0);
    put("f", "s", large);
    ASSERT_EQ(code(at("f")->names()->rename("d/g", when_taken::refuse)), 0);
    EXPECT_EQ(content("d/g", "s"), large);
    fs::rename(scratch.path_of("d"), scratch.path_of("e"));
    fs::rename(scratch.path_of("e/g"), scratch.path_of("h"));
    reopen();
    EXPECT_EQ(content("h", "s"), large);
}

TEST_F(host_streams, are_those_of_all_names_of_a_file) {
    put("f", "s", large);
    ASSERT_EQ(code(at("f")->names()->link("g", when_taken::refuse)), 0);
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_EQ(content("g", "s"), large) << "one name is left";
    ASSERT_EQ(code(at("g")->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(host_streams, remain_those_of_the_copies_of_a_removed_file) {
    put("f", "s", large);
    copy_reference("f", "copy");
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());
    EXPECT_THAT(lost(), ElementsAre("=s"));
    EXPECT_EQ(content("copy", "s"), large);
    ASSERT_EQ(code(write(*stream("copy", "s"), "changed")), 0);
    EXPECT_EQ(content("copy", "s"), "changed" + large.substr(7));
}

TEST_F(host_streams, go_with_a_removed_or_replaced_file) {
    put("f", "s", large);
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());

    scratch.write("old", "");
    scratch.write("new", "");
    put("old", "of old", large);
    put("new", "of new", large);
    ASSERT_EQ(code(at("new")->names()->rename("OLD", when_taken::replace)), 0);
    EXPECT_THAT(stored(), ElementsAre("=of new"));
    scratch.write("linked", "");
    ASSERT_EQ(code(at("linked")->names()->link("old", when_taken::replace)), 0);
    EXPECT_THAT(stored(), IsEmpty());

    ASSERT_EQ(code(volume->create("d", {.kind = node_kind::directory})), 0);
    put("d", "of directory", large);
    ASSERT_EQ(code(at("d")->names()->remove()), 0);
    EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(host_streams, belong_to_a_copied_file_after_its_first_change) {
    put("f", "s", large);
    put("f", "other", large);
    const auto reference = io::file_handle::open({}, scratch.path_of("f")).value();
    scratch.write("copy", "");
    const auto copy = io::file_handle::open({}, scratch.path_of("copy"), io::mode::write).value();
    ASSERT_TRUE(store_stream_record(copy, load_stream_record(reference).value().value(),
                                    record_storing::only_if_none));
    EXPECT_EQ(content("copy", "s"), large);
    EXPECT_THAT(stored(), SizeIs(2)) << "nothing is copied for a reader";
    const auto of_copy = stream("copy", "s");
    EXPECT_FALSE(of_copy->data()->transfers_at_once());
    ASSERT_EQ(code(write(*of_copy, "changed")), 0);
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_EQ(content("copy", "s").substr(0, 8), "changedL");
    EXPECT_EQ(content("copy", "other"), large);
    EXPECT_THAT(stored(), SizeIs(4));
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_EQ(content("copy", "other"), large);
}

TEST_F(host_streams, are_not_copied_to_be_removed) {
    put("f", "s", large);
    copy_reference("f", "copy");
    ASSERT_EQ(code(stream("copy", "s")->names()->remove()), 0);
    EXPECT_EQ(content("f", "s"), large);
    EXPECT_THAT(streams("copy"), IsEmpty());
    EXPECT_THAT(stored(), ElementsAre("=s"));
}

TEST_F(host_streams, are_not_copied_to_be_removed_together) {
    put("f", "s", large);
    put("f", "t", large);
    copy_reference("f", "copy");
    put("copy", "small", "content");
    ASSERT_EQ(code(at("copy")->attached()->remove_streams()), 0);
    EXPECT_THAT(streams("copy"), IsEmpty());
    EXPECT_THAT(stored(), ElementsAre("=s", "=t"));
    EXPECT_FALSE(fs::exists(directory_of("copy")));
    EXPECT_EQ(content("f", "t"), large);
    ASSERT_EQ(code(at("f")->attached()->remove_streams()), 0);
    EXPECT_THAT(stored(), IsEmpty());
}

// As of another file with the same number: one in a snapshot, or one that got it after a removal.
TEST_F(host_streams, are_not_those_of_a_file_that_only_has_the_same_inode_number) {
    put("f", "s", large);
    const auto directory = io::directory_handle::open({}, directory_of("f").string()).value();
    stream_record mark = load_stream_record(directory).value().value();
    mark.born += 1;
    ASSERT_TRUE(store_stream_record(directory, mark, record_storing::replace));
    const auto one = stream("f", "s");
    EXPECT_FALSE(one->data()->transfers_at_once());
    EXPECT_EQ(read(*one), large);
    ASSERT_EQ(code(write(*one, "changed")), 0);
    EXPECT_THAT(stored(), ElementsAre("=s", "=s"));
    ASSERT_EQ(code(at("f")->names()->remove()), 0);
    EXPECT_THAT(stored(), ElementsAre("=s")) << "those of the other file";
}

TEST_F(host_streams, follow_a_change_of_the_owner_of_their_file) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can change owners";
    put("f", "s", large);
    ASSERT_EQ(::chown(scratch.path_of("f").c_str(), 12345, 54321), 0);
    EXPECT_EQ(content("f", "s"), large);
    struct stat status{};
    ASSERT_EQ(::stat((directory_of("f") / "=s").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 12345U) << "whose quota counts";
    EXPECT_EQ(status.st_gid, 54321U);
    const auto directory = io::directory_handle::open({}, directory_of("f").string()).value();
    EXPECT_EQ(load_stream_record(directory).value()->owner, 12345U);
}

TEST_F(host_streams, stay_when_a_copy_of_their_file_is_removed) {
    put("f", "s", large);
    scratch.write("copy", "");
    const auto original = io::file_handle::open({}, scratch.path_of("f")).value();
    const auto copy = io::file_handle::open({}, scratch.path_of("copy"), io::mode::write).value();
    ASSERT_TRUE(store_stream_record(copy, load_stream_record(original).value().value(),
                                    record_storing::only_if_none));
    ASSERT_EQ(code(at("copy")->names()->remove()), 0);
    EXPECT_EQ(content("f", "s"), large);
}

TEST_F(host_streams, are_not_read_by_a_forged_reference_of_another_owner) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can create files of several owners";
    put("f", "secret", large);
    const auto original = io::file_handle::open({}, scratch.path_of("f")).value();
    stream_record forged = load_stream_record(original).value().value();
    scratch.write("forged", "");
    ASSERT_EQ(::chown(scratch.path_of("forged").c_str(), 12345, 12345), 0);
    struct stat status{};
    ASSERT_EQ(::stat(scratch.path_of("forged").c_str(), &status), 0);
    forged.inode = status.st_ino;
    forged.owner = 12345;
    const auto file = io::file_handle::open({}, scratch.path_of("forged"), io::mode::write).value();
    ASSERT_TRUE(store_stream_record(file, forged, record_storing::only_if_none));
    EXPECT_EQ(content("forged", "secret"), "error " + std::to_string(ENOENT));
    EXPECT_THAT(streams("forged"), IsEmpty());
    put("forged", "secret", std::string(5000, 'x'));
    EXPECT_EQ(content("f", "secret"), large) << "it has been changed";
    ASSERT_EQ(code(at("forged")->names()->remove()), 0);
    EXPECT_EQ(content("f", "secret"), large) << "it has been removed";
}

TEST_F(host_streams, are_not_overlooked_if_their_store_cannot_be_used) {
    put("f", "s", large);
    ASSERT_EQ(::chmod(scratch.path_of(".sluice-streams").c_str(), 0770), 0);
    EXPECT_EQ(code(at("f")->attached()->streams()), EACCES);
    EXPECT_EQ(code(at("f")->attached()->remove_streams()), EACCES);
}

// --- leftovers

TEST_F(host_streams, are_the_attributes_even_if_a_crash_has_left_files_of_the_same_name) {
    put("f", "other", large);
    put("f", "s", "attribute");
    const auto leftover = directory_of("f") / "=s";
    const auto leave = [&] { scratch.write(fs::relative(leftover, scratch.path()).string(), "leftover"); };
    leave();
    EXPECT_EQ(content("f", "s"), "attribute");
    EXPECT_THAT(streams("f"), ElementsAre("other 10000", "s 9"));
    ASSERT_EQ(code(stream("f", "s")->names()->rename("t", when_taken::refuse)), 0);
    EXPECT_FALSE(fs::exists(leftover)) << "it would be a stream now";
    ASSERT_EQ(code(stream("f", "t")->names()->rename("s", when_taken::refuse)), 0);
    leave();
    ASSERT_EQ(code(stream("f", "s")->names()->remove()), 0);
    EXPECT_THAT(streams("f"), ElementsAre("other 10000"));
    put("f", "s", "attribute");
    leave();
    const auto grown = stream("f", "s");
    ASSERT_EQ(code(write(*grown, "end", 5000)), 0);
    EXPECT_EQ(read(*grown).substr(0, 10), std::string("attribute") + '\0');
}

TEST_F(host_streams, remain_readable_on_a_read_only_volume_that_changes_nothing) {
    put("f", "s", large);
    reopen({.read_only = true});
    EXPECT_EQ(content("f", "s"), large);
    const auto one = at("f")->attached()->open_stream({.name = "s"}).value();
    EXPECT_EQ(code(one->data()->open_data(both)), EROFS);
    EXPECT_EQ(code(one->names()->remove()), EROFS);
    EXPECT_EQ(code(one->names()->rename("t", when_taken::refuse)), EROFS);
    EXPECT_EQ(code(one->change({.is_sparse = true})), EROFS);
    EXPECT_EQ(code(at("f")->attached()->open_stream({.name = "t", .create = true})), EROFS);
}

}  // namespace
}  // namespace sluice::vfs
