#include "sluice/io/path/file_status.hpp"

#include <filesystem>

#include "sluice/io/path/status_conversion.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using file_status_on = on_each_volume;

TEST_P(file_status_on, describes_the_file_at_a_path) {
    directory.write("file", "123");
    fs::create_hard_link(directory.path_of("file"), directory.path_of("again"));
    fs::permissions(directory.path_of("file"), fs::perms(0640));
    const auto status = status_at(directory.anchor(), "file");
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_EQ(status->type, file_type::regular);
    EXPECT_EQ(status->size_bytes, 3U);
    EXPECT_EQ(status->links, 2U);
    EXPECT_EQ(status->permission_bits, 0640);
    EXPECT_TRUE(status->is_same_inode(status_at(directory.anchor(), "again").value()));
    EXPECT_FALSE(status->is_same_inode(status_at(directory.anchor(), ".").value()));
    const auto age = std::chrono::system_clock::now() - status->modified;
    EXPECT_LT(age, 1min);
    EXPECT_GT(age, -1min);
    if (status->born) EXPECT_LE(*status->born, status->changed);
}

TEST_P(file_status_on, describes_the_link_itself_unless_links_are_followed) {
    directory.write("file", "123");
    fs::create_symlink("file", directory.path_of("link"));
    EXPECT_EQ(status_at(directory.anchor(), "link").value().type, file_type::symlink);
    EXPECT_EQ(status_at(directory.anchor(), "link", follow::yes).value().type, file_type::regular);
    EXPECT_EQ(status_at(directory.confined(), "link", follow::yes).value().size_bytes, 3U);
}

TEST_P(file_status_on, is_refused_for_paths_outside_the_base) {
    EXPECT_EQ(status_at(directory.confined(), "..").error(), std::errc::cross_device_link);
    EXPECT_EQ(status_at(directory.confined(), "none").error().message(),
              "none: get status: No such file or directory");
}

TEST_P(file_status_on, times_are_set_to_the_nanosecond_also_before_1970) {
    directory.write("file", "");
    const auto file = directory.confined();
    const file_status::time_point before_the_epoch(-1'000'000'001ns);
    const file_status::time_point recent(1'700'000'000'123'456'789ns);
    ASSERT_TRUE(set_times(file, {.accessed = {}, .modified = recent}));
    EXPECT_EQ(status_of(file).value().modified, recent);
    ASSERT_TRUE(set_times(file, {.accessed = {}, .modified = before_the_epoch}));
    EXPECT_EQ(status_of(file).value().modified, before_the_epoch);
}

TEST_P(file_status_on, times_without_a_value_do_not_change) {
    const auto before = status_of(directory.anchor()).value();
    ASSERT_TRUE(set_times(directory.anchor(), {}));
    EXPECT_EQ(status_of(directory.anchor()).value().modified, before.modified);
}

TEST(file_status, times_beyond_the_range_of_nanoseconds_are_clamped) {
    EXPECT_EQ(to_time_point(15'000'000'000, 0), file_status::time_point::max());
    EXPECT_EQ(to_time_point(-15'000'000'000, 0), file_status::time_point::min());
    EXPECT_EQ(to_time_point(-2, 500'000'000), file_status::time_point(-1500ms));
}

TEST(file_status, is_an_error_for_an_invalid_handle) {
    EXPECT_EQ(status_of(handle()).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(set_times(handle(), {}).error(), std::errc::bad_file_descriptor);
}

SLUICE_ON_EACH_VOLUME(file_status_on);

}  // namespace
}  // namespace sluice::io
