#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>

#include "sluice/io/call/limits.hpp"

namespace sluice::io {

/// A borrowed path, as a function parameter.
///
/// Records whether a zero follows the text, so that a literal or a std::string is passed to the
/// kernel directly, and only a part of a longer text has to be copied. Bytes, no encoding, as for
/// the kernel. Thread safety: a value; the borrowed text must outlive the call it is passed to.
class path_view {
public:
    constexpr path_view(const char* text) noexcept  // NOLINT: meant to convert
        : text_(text), terminated_(true) {}
    path_view(const std::string& text) noexcept  // NOLINT: meant to convert
        : text_(text), terminated_(true) {}
    constexpr path_view(std::string_view text) noexcept  // NOLINT: meant to convert
        : text_(text) {}
    /// std::filesystem::path, without including its header.
    template <class Path>
        requires requires(const Path& path) {
            { path.native() } -> std::same_as<const std::string&>;
        }
    path_view(const Path& path) noexcept  // NOLINT: meant to convert
        : path_view(path.native()) {}

    [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }
    [[nodiscard]] constexpr bool is_terminated() const noexcept { return terminated_; }

private:
    std::string_view text_;
    bool terminated_ = false;
};

/// A path as the kernel requires it: it ends in a zero and has none before. Copies only a path that
/// is not terminated already, into itself and not to the heap. Neither movable nor copyable: it may
/// point into itself.
class terminated_path {
public:
    explicit terminated_path(path_view path) noexcept;
    terminated_path(const terminated_path&) = delete;
    terminated_path& operator=(const terminated_path&) = delete;

    /// Returns 0; EINVAL if the path contains a zero; ENAMETOOLONG if it is longer than the kernel
    /// accepts.
    [[nodiscard]] int problem() const noexcept { return problem_; }
    /// Valid if there is no problem.
    [[nodiscard]] const char* c_str() const noexcept { return start_; }
    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string_view text_;
    const char* start_ = nullptr;
    int problem_ = 0;
    // Not initialised unless needed: 4 KiB to clear per call.
    std::array<char, limits::path_bytes_max> copy_;
};

}  // namespace sluice::io
