#include "sluice/cli/fat/failure.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

std::string fat_reason(const error& why) {
    std::string reason = std::generic_category().message(why.code());
    if (why == std::errc::illegal_byte_sequence) reason = "FAT cannot store this name";
    if (why == std::errc::not_a_directory and std::string_view(why.operation()) == "find")
        reason = "a directory in the path does not exist";
    if (why == std::errc::io_error) reason += "; 'sluice fat check' may show the cause";
    return std::string(why.operation()) + ": " + reason;
}

std::string fat_message(const error& why, const std::string& what) {
    return what + ": " + fat_reason(why);
}

std::string shown(const std::string& path) {
    return "/" + terminal_text(path);
}

bool exists(const std::string& path) noexcept {
    std::error_code unknown;
    return std::filesystem::exists(path, unknown);
}

void remove_or_fail(const std::string& path) {
    std::error_code why;
    std::filesystem::remove(path, why);
    if (why) fail(path + ": remove: " + why.message());
}

void succeed_or_fail(const result<void>& got, const std::string& what) {
    if (not got) fail(fat_message(got.error(), what));
}

}  // namespace sluice::cli
