#include "sluice/io/path/xattr.hpp"

#include <array>
#include <filesystem>
#include <set>
#include <string>

#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

// tmpfs has user attributes only since Linux 6.6; "trusted" ones need a privilege but work on both.
class xattr_on : public on_each_volume {
protected:
    xattr_on() {
        file = file_handle::open(directory.anchor(), "file", mode::write, creation::if_needed).value();
        attributes_only = file_handle::open(directory.anchor(), "file", mode::attr_write).value();
        supported = store_xattr(file, "user.probe", {}).has_value() and remove_xattr(file, "user.probe");
    }
    void SetUp() override {
        if (not supported) GTEST_SKIP() << "no user attributes here";
    }
    file_handle file;
    file_handle attributes_only;
    bool supported = false;
};

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::string fetch(const handle& open, path_view name) {
    std::array<std::byte, 64> storage{};
    const auto value = fetch_xattr(open, name, storage);
    if (not value) return value.error().message();
    return {reinterpret_cast<const char*>(value->data()), value->size()};
}

TEST_P(xattr_on, a_stored_attribute_is_fetched_through_any_kind_of_handle) {
    ASSERT_TRUE(store_xattr(attributes_only, "user.comment", bytes("hello")));
    EXPECT_EQ(fetch(file, "user.comment"), "hello");
    ASSERT_TRUE(store_xattr(file, "user.comment", bytes("bye")));
    EXPECT_EQ(fetch(attributes_only, std::string_view("user.comment etc").substr(0, 12)), "bye");
    EXPECT_EQ(xattr_bytes(attributes_only, "user.comment").value(), 3U);
}

TEST_P(xattr_on, creation_decides_what_happens_to_an_existing_attribute) {
    EXPECT_EQ(store_xattr(file, "user.a", bytes("1"), xattr_creation::replace_existing).error(),
              std::errc::no_message_available);
    ASSERT_TRUE(store_xattr(file, "user.a", bytes("1"), xattr_creation::only_if_not_exist));
    EXPECT_EQ(store_xattr(file, "user.a", bytes("2"), xattr_creation::only_if_not_exist).error(),
              std::errc::file_exists);
}

TEST_P(xattr_on, an_empty_value_is_not_a_missing_one) {
    ASSERT_TRUE(store_xattr(file, "user.empty", {}));
    EXPECT_TRUE(fetch_xattr(file, "user.empty", {}).value().empty());
    EXPECT_EQ(fetch(file, "user.none"), "user.none: getxattr: No data available");
}

TEST_P(xattr_on, too_small_a_storage_is_an_error_not_a_part) {
    ASSERT_TRUE(store_xattr(file, "user.a", bytes("12")));
    std::array<std::byte, 1> one{};
    EXPECT_EQ(fetch_xattr(file, "user.a", one).error(), std::errc::result_out_of_range);
    EXPECT_EQ(fetch_xattr(file, "user.a", {}).error(), std::errc::result_out_of_range);
    EXPECT_EQ(list_xattrs(file, {}).error(), std::errc::result_out_of_range);
}

TEST_P(xattr_on, a_list_names_them_all_once) {
    ASSERT_TRUE(store_xattr(file, "user.a", bytes("1")));
    ASSERT_TRUE(store_xattr(file, "user.b", bytes("2")));
    ASSERT_TRUE(remove_xattr(attributes_only, "user.b"));
    ASSERT_TRUE(store_xattr(file, "user.c", bytes("3")));
    std::array<char, 1024> storage{};
    for (const handle* open :
         {static_cast<const handle*>(&file), static_cast<const handle*>(&attributes_only)}) {
        std::string_view list = list_xattrs(*open, storage).value();
        std::multiset<std::string> names;
        for (auto name = take_xattr_name(list); not name.empty(); name = take_xattr_name(list))
            if (name.starts_with("user.")) names.emplace(name);
        EXPECT_EQ(names, (std::multiset<std::string>{"user.a", "user.c"}));
    }
}

std::string fetch_at(const handle& directory, path_view entry, path_view name, std::size_t room = 64) {
    std::array<std::byte, 64> storage{};
    const auto value = fetch_xattr_at(directory, entry, name, std::span(storage).first(room));
    if (not value) return std::to_string(value.error().code());
    return {reinterpret_cast<const char*>(value->data()), value->size()};
}

// Returns the results of fetch_xattr_at for all attributes, in one line.
std::string fetch_all_at(const handle& directory) {
    std::string all = fetch_at(directory, "file", "user.comment");
    all += "," + fetch_at(directory, std::string_view("file etc").substr(0, 4), "user.comment", 5);
    for (const char* const name : {"user.none", "user.empty"})
        all += "," + fetch_at(directory, "file", name);
    for (const char* const entry : {"link", "missing", "", ".", "..", "a/b", "/"})
        all += "," + fetch_at(directory, entry, "user.comment");
    return all + "," + fetch_at(directory, "file", "user.comment", 4) + "," +
           fetch_at(directory, "file", "user.comment", 0) + "," + fetch_at(handle(), "file", "user.comment");
}

TEST_P(xattr_on, entries_of_a_directory_are_read_by_name_on_kernels_old_and_new) {
    constexpr int getxattrat = 464;
    std::filesystem::create_symlink("file", directory.path_of("link"));
    ASSERT_TRUE(store_xattr(file, "user.comment", bytes("hello")));
    ASSERT_TRUE(store_xattr(file, "user.empty", {}));
    const auto text = [](int code) { return std::to_string(code); };
    std::string expected = "hello,hello," + text(ENODATA) + ",," + text(ENODATA) + "," + text(ENOENT);
    for (int refused = 0; refused != 5; ++refused)
        expected += "," + text(EINVAL);
    expected += "," + text(ERANGE) + "," + text(ERANGE) + "," + text(EBADF);
    EXPECT_EQ(fetch_all_at(directory.anchor()), expected);
    for (const int code : {ENOSYS, EPERM}) {
        const std::string in_sandbox = sandbox_test::ask_in_child([&] {
            sandbox_test::deny(getxattrat, code);
            return fetch_all_at(directory.anchor());
        });
        EXPECT_EQ(in_sandbox, expected) << "denied with " << code;
    }
}

TEST_P(xattr_on, invalid_names_are_refused_by_name) {
    using namespace std::string_view_literals;
    EXPECT_EQ(store_xattr(file, "user.a\0b"sv, {}).error(), std::errc::invalid_argument);
    EXPECT_EQ(store_xattr(file, "user." + std::string(255, 'x'), {}).error(), std::errc::filename_too_long);
    EXPECT_EQ(remove_xattr(file, "user.none").error().message(), "user.none: removexattr: No data available");
}

SLUICE_ON_EACH_VOLUME(xattr_on);

}  // namespace
}  // namespace sluice::io
