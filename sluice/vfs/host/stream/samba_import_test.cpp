#include "sluice/vfs/host/stream/samba_import.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>

#include "sluice/vfs/host/stream/stream_store_rules.hpp"
#include "sluice/vfs/host/stream/stream_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(samba_streams, in_attributes_have_the_name_and_the_type_of_the_stream) {
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.Zone.Identifier:$DATA"), "Zone.Identifier");
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.no type"), "no type");
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.lower:$data"), "lower");
    for (const char* other : {"user.DosStream.", "user.DosStream.:$DATA", "user.DosStreamExt.1.x:$DATA",
                              "user.DOSATTRIB", "user.sluice.stream.x", ""})
        EXPECT_FALSE(samba_stream_of_attribute(other)) << other;
    EXPECT_EQ(samba_extension_of("user.DosStream.x:$DATA", 2), "user.DosStreamExt.2.x:$DATA");
    EXPECT_EQ(samba_extension_of("user.DosStream.x:$DATA", 2, "user.more."), "user.more.2.x:$DATA");
}

TEST(samba_streams, end_with_the_number_of_further_attributes) {
    const auto decode = [](std::string_view text) {
        return decode_samba_value(bytes_view(std::as_bytes(std::span(text))));
    };
    const auto plain = decode(std::string_view("abc\0", 4)).value();
    EXPECT_EQ(plain.content.size(), 3U);
    EXPECT_EQ(plain.extensions, 0U);
    EXPECT_EQ(decode("ab\x02").value().extensions, 2U);
    EXPECT_EQ(decode(std::string_view("\0", 1)).value().content.size(), 0U);
    EXPECT_FALSE(decode(""));
    EXPECT_FALSE(decode("ab\x10")) << "more than Samba uses";
}

TEST(samba_streams, in_a_depot_are_in_a_directory_with_the_number_of_their_file) {
    const auto file = decode_samba_depot_name("FE00000000000000341200000000000F").value();
    EXPECT_EQ(file.device, 0xfeU);
    EXPECT_EQ(file.inode, 0x0f00000000001234U);
    EXPECT_TRUE(decode_samba_depot_name("fe00000000000000341200000000000f"));
    for (const char* other :
         {"", "FE", "FE00000000000000341200000000000", "GE000000000000003412000000000000"})
        EXPECT_FALSE(decode_samba_depot_name(other)) << other;
    EXPECT_EQ(samba_stream_of_depot_file(":AFP_Resource:$DATA"), "AFP_Resource");
    EXPECT_FALSE(samba_stream_of_depot_file("AFP_Resource:$DATA"));
    EXPECT_FALSE(samba_stream_of_depot_file("::$DATA"));
}

class samba_import_test : public stream_test {
protected:
    samba_import_result import(const samba_import_options& options = {}) {
        lines.clear();
        samba_import importing(*volume, *multiplexer, options,
                               [&](const std::string& line) { lines.push_back(line); });
        problem = importing.open_depot().value_or(std::string());
        return problem.empty() ? importing.run() : samba_import_result{};
    }
    void set_attribute(const std::string& file, const std::string& name, std::string_view value) const {
        ASSERT_EQ(::setxattr(scratch.path_of(file).c_str(), name.c_str(), value.data(), value.size(), 0), 0);
    }
    [[nodiscard]] bool has_attribute(const std::string& file, const std::string& name) const {
        return io::xattr_bytes(io::file_handle::open({}, scratch.path_of(file)).value(), name).has_value();
    }
    // The directory of a depot in which Samba stores the streams of a file, as the module names it.
    [[nodiscard]] std::string depot_directory_of(const std::string& file,
                                                 std::uint64_t device_offset = 0) const {
        struct stat status{};
        EXPECT_EQ(::stat(scratch.path_of(file).c_str(), &status), 0);
        std::string name;
        for (std::uint64_t number : {static_cast<std::uint64_t>(status.st_dev) + device_offset,
                                     static_cast<std::uint64_t>(status.st_ino)})
            for (int i = 0; i != 8; ++i, number >>= 8) {
                constexpr std::string_view digits = "0123456789ABCDEF";
                name += digits[number >> 4 & 0xf];
                name += digits[number & 0xf];
            }
        return ".streams/3A/07/" + name;
    }
    void put_in_depot(const std::string& directory, const std::string& name, const std::string& text) const {
        fs::create_directories(scratch.path_of(directory));
        scratch.write(directory + '/' + name, text);
    }

    std::vector<std::string> lines;
    std::string problem;  // with the depot
    const std::string depot = scratch.path_of(".streams");
};

TEST_F(samba_import_test, imports_streams_in_attributes_of_files_and_directories) {
    fs::create_directories(scratch.path_of("d/e"));
    set_attribute("f", "user.DosStream.Zone.Identifier:$DATA", std::string_view("[ZoneTransfer]\0", 15));
    set_attribute("d/e", "user.DosStream.AFP_AfpInfo:$DATA", std::string_view("info\0", 5));
    set_attribute("f", "user.DosStream.empty:$DATA", std::string_view("\0", 1));
    set_attribute("f", "user.comment", "no stream");
    EXPECT_EQ(import().imported, 3U);
    EXPECT_THAT(lines, IsEmpty());
    EXPECT_EQ(content("f", "Zone.Identifier"), "[ZoneTransfer]");
    EXPECT_EQ(content("d/e", "AFP_AfpInfo"), "info");
    EXPECT_THAT(streams("f"), ElementsAre("Zone.Identifier 14", "empty 0"));
    EXPECT_TRUE(has_attribute("f", "user.DosStream.Zone.Identifier:$DATA")) << "Samba can still use it";

    const auto again = import({.removes_sources = true});
    EXPECT_EQ(again.imported, 0U);
    EXPECT_EQ(again.present, 3U);
    EXPECT_FALSE(has_attribute("f", "user.DosStream.Zone.Identifier:$DATA"));
    EXPECT_TRUE(has_attribute("f", "user.comment"));
    EXPECT_EQ(import().present, 0U);
    EXPECT_EQ(content("f", "Zone.Identifier"), "[ZoneTransfer]");
}

TEST_F(samba_import_test, imports_streams_of_several_attributes) {
    set_attribute("f", "user.DosStream.s:$DATA", "first \x02");
    set_attribute("f", "user.DosStreamExt.1.s:$DATA", "second ");
    set_attribute("f", "user.DosStreamExt.2.s:$DATA", "third");
    EXPECT_EQ(import({.removes_sources = true}).imported, 1U);
    EXPECT_EQ(content("f", "s"), "first second third");
    EXPECT_FALSE(has_attribute("f", "user.DosStreamExt.2.s:$DATA"));
}

TEST_F(samba_import_test, completes_an_import_that_was_interrupted) {
    const std::string directory = depot_directory_of("f");
    put_in_depot(directory, ":large:$DATA", large);
    put("f", "other", large);
    // An interrupted import leaves a file that is not listed as a stream.
    std::ofstream(directory_of("f") / "=:import") << "a part";
    EXPECT_THAT(streams("f"), ElementsAre("other 10000"));
    EXPECT_EQ(import({.needs_mark = false}).imported, 1U);
    EXPECT_EQ(content("f", "large"), large);
    EXPECT_THAT(stored(), ElementsAre("=large", "=other"));
}

TEST_F(samba_import_test, imports_streams_of_any_name) {
    // Including those that the import could use for itself.
    const std::string directory = depot_directory_of("f");
    put_in_depot(directory, ":.sluice-import:$DATA", large);
    put_in_depot(directory, ":x:$DATA", large);
    EXPECT_EQ(import({.needs_mark = false}).imported, 2U);
    EXPECT_EQ(import({.needs_mark = false}).present, 2U);
    EXPECT_THAT(streams("f"), ElementsAre(".sluice-import 10000", "x 10000"));
}

TEST_F(samba_import_test, keeps_a_stream_without_one_of_its_attributes) {
    set_attribute("f", "user.DosStream.s:$DATA", "first \x02");
    set_attribute("f", "user.more.1.s:$DATA", "second ");
    set_attribute("f", "user.more.2.s:$DATA", "third");
    const auto done = import({.removes_sources = true});
    EXPECT_EQ(done.failed, 1U);
    EXPECT_EQ(done.incomplete, 1U);
    EXPECT_THAT(lines, ElementsAre(HasSubstr("user.DosStreamExt.1.s:$DATA")));
    EXPECT_THAT(streams("f"), IsEmpty());
    EXPECT_TRUE(has_attribute("f", "user.DosStream.s:$DATA"));
    EXPECT_TRUE(import({.removes_sources = true, .extension_prefix = "user.more."}).is_complete());
    EXPECT_EQ(content("f", "s"), "first second third");
    EXPECT_FALSE(has_attribute("f", "user.more.2.s:$DATA"));
}

TEST_F(samba_import_test, removes_the_first_attribute_of_a_stream_before_the_others) {
    // As after an interruption between the two: the rest does not count.
    set_attribute("f", "user.DosStreamExt.1.s:$DATA", "second");
    const auto done = import({.removes_sources = true});
    EXPECT_EQ(done.imported + done.failed + done.conflicts, 0U);
    EXPECT_THAT(streams("f"), IsEmpty());
}

TEST_F(samba_import_test, never_changes_the_modification_time_of_a_file) {
    constexpr time_point long_ago{std::chrono::seconds(1'000'000'000)};
    put_in_depot(depot_directory_of("f"), ":large:$DATA", large);
    put_in_depot(depot_directory_of("f"), ":small:$DATA", "small");
    fs::create_directory(scratch.path_of(depot_directory_of("f") + "/:not a file:$DATA"));
    ASSERT_EQ(code(at("f")->change({.modified = long_ago})), 0);
    const auto modified = [&] { return at("f")->status().value().modified; };
    // Also while the import runs, which can be interrupted.
    std::vector<time_point> seen;
    samba_import importing(*volume, *multiplexer, {.needs_mark = false},
                           [&](const std::string& /*line*/) { seen.push_back(modified()); });
    EXPECT_FALSE(importing.open_depot());
    EXPECT_EQ(importing.run().imported, 2U);
    EXPECT_EQ(content("f", "large"), large);
    EXPECT_EQ(modified(), long_ago);
    EXPECT_THAT(seen, ElementsAre(long_ago));
}

TEST_F(samba_import_test, does_not_replace_a_stream_with_other_content) {
    put("f", "S", "present");
    set_attribute("f", "user.DosStream.s:$DATA", std::string_view("another\0", 8));
    const auto done = import({.removes_sources = true});
    EXPECT_EQ(done.conflicts, 1U);
    EXPECT_THAT(lines, ElementsAre("f:s: exists with other content; not changed"));
    EXPECT_EQ(content("f", "s"), "present");
    EXPECT_TRUE(has_attribute("f", "user.DosStream.s:$DATA"));
}

TEST_F(samba_import_test, reports_streams_that_it_cannot_import) {
    set_attribute("f", "user.DosStream.a:b:$DATA", std::string_view("x\0", 2));
    set_attribute("f", "user.DosStream.many:$DATA", "x\x7f");
    const auto done = import({.removes_sources = true});
    EXPECT_EQ(done.failed, 2U);
    EXPECT_EQ(lines.size(), 2U);
    EXPECT_TRUE(has_attribute("f", "user.DosStream.a:b:$DATA"));
}

TEST_F(samba_import_test, imports_streams_of_any_size_from_a_depot) {
    const std::string directory = depot_directory_of("f");
    const std::string huge(3U << 20, 'h');
    put_in_depot(directory, ":AFP_Resource:$DATA", huge);
    put_in_depot(directory, ":small:$DATA", "small");
    put_in_depot(directory, "not a stream", "x");
    put_in_depot(".streams/00/00/00000000000000000000000000000000", ":s:$DATA", "of no file");
    const samba_import_options options{.depot = depot};
    const auto unmarked = import(options);
    EXPECT_EQ(unmarked.imported, 0U) << "the inode may be another file's by now";
    EXPECT_EQ(unmarked.unmatched, 1U);
    EXPECT_EQ(unmarked.unmarked, 1U);
    EXPECT_FALSE(unmarked.is_complete());
    EXPECT_EQ(lines.size(), 2U);
    set_attribute("f", "user.SAMBA_STREAMS", "1");
    const auto done = import(options);
    EXPECT_EQ(done.imported, 2U);
    EXPECT_EQ(done.unmatched, 1U);
    EXPECT_EQ(stream("f", "AFP_Resource")->status().value().size_bytes, huge.size());
    EXPECT_EQ(content("f", "small"), "small");

    auto removing = options;
    removing.removes_sources = true;
    EXPECT_EQ(import(removing).present, 2U);
    EXPECT_TRUE(scratch.exists(directory + "/not a stream"));
    fs::remove(scratch.path_of(directory + "/not a stream"));
    EXPECT_EQ(import(removing).imported, 0U);
    EXPECT_FALSE(scratch.exists(".streams/3A"));
    EXPECT_FALSE(has_attribute("f", "user.SAMBA_STREAMS"));
    EXPECT_EQ(stream("f", "AFP_Resource")->status().value().size_bytes, huge.size());
}

TEST_F(samba_import_test, ignores_the_device_and_the_mark_only_on_request) {
    put_in_depot(depot_directory_of("f", 1), ":s:$DATA", "content");
    samba_import_options options{.needs_mark = false};
    EXPECT_EQ(import(options).imported, 0U);
    options.any_device = true;
    EXPECT_EQ(import(options).imported, 1U);
    EXPECT_EQ(content("f", "s"), "content");
}

TEST_F(samba_import_test, does_not_mix_streams_of_several_file_systems) {
    put_in_depot(depot_directory_of("f", 1), ":s:$DATA", "content");
    put_in_depot(depot_directory_of("f", 2), ":s:$DATA", "a stream of another file system");
    const auto done = import({.any_device = true, .needs_mark = false});
    EXPECT_THAT(problem, HasSubstr("several file systems"));
    EXPECT_EQ(done.imported, 0U);
    EXPECT_THAT(streams("f"), IsEmpty());
    (void)import({.needs_mark = false});
    EXPECT_EQ(problem, "") << "without the option, there is no doubt";
}

TEST_F(samba_import_test, gives_streams_to_the_file_that_is_open) {
    // Two files, and a local user who exchanges their names after they were listed.
    scratch.write("one", "");
    scratch.write("two", "");
    for (const char* each : {"one", "two"}) {
        set_attribute(each, "user.DosStream.bad:$DATA", "x\x7f");  // makes the import report a line
        put_in_depot(depot_directory_of(each), std::string(":") + each, "content");
    }
    bool is_exchanged = false;
    const auto report = [&](const std::string& line) {
        if (is_exchanged or line.starts_with("f:")) return;
        is_exchanged = true;
        fs::rename(scratch.path_of("one"), scratch.path_of("other"));
        fs::rename(scratch.path_of("two"), scratch.path_of("one"));
        fs::rename(scratch.path_of("other"), scratch.path_of("two"));
    };
    samba_import importing(*volume, *multiplexer, {.needs_mark = false}, report);
    EXPECT_FALSE(importing.open_depot());
    EXPECT_EQ(importing.run().imported, 1U);
    EXPECT_TRUE(is_exchanged);
    EXPECT_EQ(content("one", "one"), "error 2") << "this is the other file now";
    EXPECT_EQ(content("two", "two"), "error 2");
}

TEST_F(samba_import_test, takes_streams_from_a_depot_only_of_the_owner_of_the_file) {
    const std::string directory = depot_directory_of("f");
    put_in_depot(directory, ":own:$DATA", "own");
    put_in_depot(directory, ":foreign:$DATA", "foreign");
    const std::string foreign = scratch.path_of(directory + "/:foreign:$DATA");
    if (::chown(foreign.c_str(), 1234, 1234) != 0) GTEST_SKIP() << "needs root";
    const auto done = import({.needs_mark = false, .removes_sources = true});
    EXPECT_EQ(done.imported, 1U);
    EXPECT_EQ(done.failed, 1U);
    EXPECT_EQ(done.foreign, 1U);
    EXPECT_THAT(lines, ElementsAre("f:foreign: belongs to user 1234, and the file to user 0"));
    EXPECT_TRUE(fs::exists(foreign));
    EXPECT_EQ(import({.any_owner = true, .needs_mark = false}).imported, 1U);
    EXPECT_EQ(content("f", "foreign"), "foreign");
}

TEST_F(samba_import_test, takes_only_regular_files_from_a_depot) {
    const std::string directory = depot_directory_of("f");
    scratch.write("secret", "secret");
    put_in_depot(directory, ":own:$DATA", "own");
    fs::create_symlink(scratch.path_of("secret"), scratch.path_of(directory + "/:link:$DATA"));
    ASSERT_EQ(::mkfifo(scratch.path_of(directory + "/:fifo:$DATA").c_str(), 0600), 0);
    const auto done = import({.needs_mark = false});
    EXPECT_EQ(done.imported, 1U);
    EXPECT_EQ(done.failed, 2U);
    EXPECT_THAT(streams("f"), ElementsAre("own 3"));
}

TEST_F(samba_import_test, does_not_use_a_depot_that_users_could_have_made) {
    put_in_depot(depot_directory_of("f"), ":s:$DATA", "content");
    fs::permissions(depot, fs::perms::all);
    EXPECT_EQ(import({.needs_mark = false}).imported, 0U);
    EXPECT_THAT(problem, HasSubstr("set the sticky bit"));
    fs::permissions(depot, fs::perms::all | fs::perms::sticky_bit);
    fs::rename(depot, scratch.path_of("elsewhere"));
    fs::create_directory_symlink("elsewhere", depot);
    EXPECT_EQ(import({.needs_mark = false}).imported, 0U);
    EXPECT_THAT(problem, HasSubstr("symbolic link"));
    EXPECT_EQ(import({.depot = depot, .needs_mark = false}).imported, 1U) << "on request";
}

TEST_F(samba_import_test, copies_and_compares_only_the_data_of_sparse_files) {
    const std::string directory = depot_directory_of("f");
    put_in_depot(directory, ":huge:$DATA", "begin");
    const std::string source = scratch.path_of(directory + "/:huge:$DATA");
    constexpr std::uintmax_t size = 15ULL << 40;
    std::error_code refused;
    fs::resize_file(source, size, refused);
    if (refused) GTEST_SKIP() << "no files of this size: " << refused.message();
    EXPECT_EQ(import({.needs_mark = false}).imported, 1U);
    const auto imported = fs::file_size(directory_of("f") / "=huge");
    EXPECT_EQ(imported, size);
    EXPECT_EQ(import({.needs_mark = false}).present, 1U);
    // Data where the other has a hole.
    {
        std::fstream change(source, std::ios::in | std::ios::out);
        change.seekp(size / 2);
        change << "more";
    }
    EXPECT_EQ(import({.needs_mark = false}).conflicts, 1U);
}

TEST_F(samba_import_test, does_not_fill_the_file_system) {
    put_in_depot(depot_directory_of("f"), ":large:$DATA", large);
    set_attribute("f", "user.DosStream.s:$DATA", std::string(3000, 's') + '\0');
    const auto done = import({.needs_mark = false, .kept_free_bytes = UINT64_MAX / 2});
    EXPECT_EQ(done.failed, 2U);
    EXPECT_THAT(lines, testing::Each(HasSubstr("No space left on device")));
    EXPECT_THAT(stored(), IsEmpty());
    EXPECT_EQ(import({.needs_mark = false}).imported, 2U);
}

TEST_F(samba_import_test, gives_large_streams_to_the_owner_of_the_file) {
    put_in_depot(depot_directory_of("f"), ":large:$DATA", large);
    const std::string source = scratch.path_of(depot_directory_of("f") + "/:large:$DATA");
    for (const std::string& each : {scratch.path_of("f"), source})
        if (::chown(each.c_str(), 1234, 1235) != 0) GTEST_SKIP() << "needs root";
    EXPECT_EQ(import({.needs_mark = false}).imported, 1U);
    struct stat status{};
    ASSERT_EQ(::stat((directory_of("f") / "=large").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 1234U);
    EXPECT_EQ(status.st_mode & 07777U, 01600U);
    EXPECT_EQ(content("f", "large"), large);
}

TEST_F(samba_import_test, imports_each_stream_once_for_several_names_of_a_file) {
    put_in_depot(depot_directory_of("f"), ":s:$DATA", "content");
    fs::create_hard_link(scratch.path_of("f"), scratch.path_of("g"));
    const auto done = import({.needs_mark = false, .removes_sources = true});
    EXPECT_EQ(done.imported, 1U);
    EXPECT_TRUE(done.is_complete()) << testing::PrintToString(lines);
    EXPECT_EQ(content("g", "s"), "content");
}

TEST_F(samba_import_test, puts_large_streams_into_the_store_of_an_outer_share) {
    fs::create_directory(scratch.path_of("nested"));
    scratch.write("nested/file", "");
    set_attribute("nested/file", "user.DosStream.s:$DATA", large.substr(0, 3000) + '\0');
    EXPECT_EQ(outer_store_of(scratch.path_of("nested")), "");
    put("f", "large", large);
    const auto canonical = fs::canonical(scratch.path()).string();
    EXPECT_EQ(outer_store_of(scratch.path_of("nested")), canonical);
    EXPECT_EQ(outer_store_of(scratch.path()), "");
    volume =
        host_volume::open(*multiplexer, scratch.path_of("nested"), {.streams_root = scratch.path()}).value();
    EXPECT_EQ(import().imported, 1U);
    EXPECT_FALSE(scratch.exists("nested/.sluice-streams"));
    EXPECT_EQ(content("file", "s"), large.substr(0, 3000));
}

TEST_F(samba_import_test, reports_a_depot_that_it_cannot_open) {
    EXPECT_EQ(import({.depot = scratch.path_of("missing")}).imported, 0U);
    EXPECT_THAT(problem, HasSubstr("No such file or directory"));
}

TEST_F(samba_import_test, explains_why_a_store_cannot_be_used) {
    const std::string store = scratch.path_of(".sluice-streams");
    const auto why = [&] {
        reopen();
        return volume->explain_stream_problem();
    };
    EXPECT_EQ(why(), "");
    fs::create_directory(store);
    fs::permissions(store, fs::perms(0755));
    EXPECT_EQ(why(),
              ".sluice-streams: has mode 00755: only the account that runs the server may have rights to it; "
              "use 'chmod 01700 .sluice-streams', if other accounts have not changed it");
    if (::chown(store.c_str(), 1234, 1234) == 0) {
        EXPECT_THAT(why(), HasSubstr("belongs to user 1234, not to user 0"));
    }
    fs::remove(store);
    fs::create_symlink("elsewhere", store);
    EXPECT_THAT(why(), HasSubstr("is a symbolic link"));
    fs::remove(store);
    scratch.write(".sluice-streams", "");
    EXPECT_THAT(why(), HasSubstr("is not a directory"));
}

TEST_F(samba_import_test, names_other_file_systems) {
    const std::string mount_point = scratch.path_of("mnt");
    fs::create_directory(mount_point);
    if (::mount("test", mount_point.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "no right to mount";
    const std::shared_ptr<const std::string> unmounting(
        &mount_point, [](const std::string* where) { (void)::umount2(where->c_str(), MNT_DETACH); });
    const auto done = import();
    EXPECT_EQ(done.mounts, 1U);
    EXPECT_FALSE(done.is_complete());
    EXPECT_THAT(lines, ElementsAre("mnt: another file system, not searched; import it by itself"));
}

}  // namespace
}  // namespace sluice::vfs
