#include "sluice/vfs/host/stream/samba_import.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>

#include "sluice/vfs/host/stream/stream_testing.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(samba_streams, in_attributes_have_the_name_and_the_type_of_the_stream) {
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.Zone.Identifier:$DATA"), "Zone.Identifier");
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.no type"), "no type");
    EXPECT_EQ(samba_stream_of_attribute("user.DosStream.lower:$data"), "lower");
    for (const char* other : {"user.DosStream.", "user.DosStream.:$DATA", "user.DosStreamExt.1.x:$DATA",
                              "user.DOSATTRIB", "user.sluice.stream.x", ""})
        EXPECT_FALSE(samba_stream_of_attribute(other)) << other;
    EXPECT_EQ(samba_extension_of("user.DosStream.x:$DATA", 2), "user.DosStreamExt.2.x:$DATA");
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
        const auto done = importing.run();
        EXPECT_EQ(code(done), 0);
        return done.value_or(samba_import_result{});
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
    put("f", ".sluice-import", large.substr(0, 5000));  // what an interrupted import leaves
    EXPECT_EQ(import({.depot = scratch.path_of(".streams"), .needs_mark = false}).imported, 1U);
    EXPECT_EQ(content("f", "large"), large);
    EXPECT_THAT(streams("f"), ElementsAre("large 10000"));
}

TEST_F(samba_import_test, removes_the_first_attribute_of_a_stream_before_the_others) {
    // As after an interruption between the two: the rest does not count.
    set_attribute("f", "user.DosStreamExt.1.s:$DATA", "second");
    const auto done = import({.removes_sources = true});
    EXPECT_EQ(done.imported + done.failed + done.conflicts, 0U);
    EXPECT_THAT(streams("f"), IsEmpty());
}

TEST_F(samba_import_test, keeps_the_modification_time_of_the_file) {
    constexpr time_point long_ago{std::chrono::seconds(1'000'000'000)};
    put_in_depot(depot_directory_of("f"), ":large:$DATA", large);
    ASSERT_EQ(code(at("f")->change({.modified = long_ago})), 0);
    EXPECT_EQ(import({.depot = scratch.path_of(".streams"), .needs_mark = false}).imported, 1U);
    EXPECT_EQ(content("f", "large"), large);
    EXPECT_EQ(at("f")->status().value().modified, long_ago);
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
    const samba_import_options options{.depot = scratch.path_of(".streams")};
    const auto unmarked = import(options);
    EXPECT_EQ(unmarked.imported, 0U) << "the inode may be another file's by now";
    EXPECT_EQ(unmarked.unmatched, 2U);
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
    samba_import_options options{.depot = scratch.path_of(".streams"), .needs_mark = false};
    EXPECT_EQ(import(options).imported, 0U);
    options.any_device = true;
    EXPECT_EQ(import(options).imported, 1U);
    EXPECT_EQ(content("f", "s"), "content");
}

TEST_F(samba_import_test, fails_if_the_depot_does_not_exist) {
    samba_import importing(*volume, *multiplexer, {.depot = scratch.path_of("missing")}, [](const auto&) {});
    EXPECT_EQ(code(importing.run()), ENOENT);
}

}  // namespace
}  // namespace sluice::vfs
