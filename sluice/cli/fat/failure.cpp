#include "sluice/cli/fat/failure.hpp"

#include <fmt/core.h>

#include <system_error>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

void fail_fat(const std::string& why) {
    fmt::print(stderr, "sluice fat: {}\n", terminal_text(why));
    leave(exit_code::failure);
}

std::string fat_reason(const error& why) {
    if (why == std::errc::file_too_large) return "a file on FAT has at most 4294967295 bytes";
    if (why == std::errc::illegal_byte_sequence) return "FAT cannot store this name";
    if (why == std::errc::io_error) return why.message() + "; 'sluice fat check' may show the cause";
    return std::generic_category().message(why.code());
}

std::string fat_message(const error& why, const std::string& what) {
    return what + ": " + fat_reason(why);
}

std::string shown(const std::string& path) {
    return "/" + terminal_text(path);
}

void succeed_or_fail(const result<void>& got, const std::string& what) {
    if (not got) fail_fat(fat_message(got.error(), what));
}

}  // namespace sluice::cli
