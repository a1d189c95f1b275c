#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::doctor {

/// Returns the first `bytes_max` bytes of a file of the system, such as those in /proc; empty if it
/// cannot be read. Opens no FIFO and no device. Blocks: as long as the file system. Allocates: the
/// text.
[[nodiscard]] std::string text_of_file(const std::string& path, std::size_t bytes_max = 64U << 10);

/// Return the lines of a text without their ends, and the words of a line, which spaces and tabs
/// separate. They borrow from the text. Complexity: linear.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line);

/// Returns the text without spaces and line ends at both of its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace sluice::cli::doctor
