#pragma once

#include <array>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/confined_open.hpp"
#include "sluice/io/path/path_handle.hpp"

// How files and directories are reached by name. Not for users: handles are opened by their own
// open().
namespace sluice::io {

/// The directory that paths are relative to, for confined_open.hpp.
[[nodiscard]] constexpr anchor_directory anchor_of(const path_handle& base) noexcept {
    return {.descriptor = base.descriptor(), .limit = base.confined()};
}

/// As confined_open.hpp.
[[nodiscard]] inline int directory_of(const path_handle& base) noexcept {
    return directory_of(anchor_of(base));
}
[[nodiscard]] inline result<int> open_at(const path_handle& base, const terminated_path& path,
                                         open_how_at how) noexcept {
    return open_at(anchor_of(base), path, how);
}

/// The parent directory of a path and the name in it, for the system calls that create, rename or
/// remove names and have no confinement of their own.
///
/// Relative to an unconfined base, the parent is opened only on request, and `name` is the whole
/// path. Otherwise the parent is opened, confined, and `name` is the last component, without the
/// slashes that may follow it. `.` and `..` are refused with EINVAL, because they are not entries
/// of that directory.
class location {
public:
    enum class parent : bool { as_needed, opened };

    location(const path_handle& base, path_view path, const char* operation,
             parent wanted = parent::as_needed) noexcept;

    /// Returns the error if the directory cannot be opened.
    [[nodiscard]] const result<void>& reached() const noexcept { return reached_; }
    [[nodiscard]] int directory() const noexcept {
        ENSURE(reached_.has_value(), "the place could not be reached");
        return directory_;
    }
    [[nodiscard]] const char* name() const noexcept {
        ENSURE(reached_.has_value(), "the place could not be reached");
        return name_;
    }
    [[nodiscard]] std::string_view text() const noexcept { return text_.text(); }

    /// Returns the calling thread's errno as the error of `operation` on this path.
    [[nodiscard]] error last(const char* operation) const noexcept {
        return error::with_path(errno, operation, text());
    }

private:
    [[nodiscard]] result<void> open_parent(const path_handle& base, const char* operation) noexcept;

    terminated_path text_;
    path_handle parent_;
    int directory_ = -1;
    const char* name_ = nullptr;
    std::array<char, limits::name_bytes_max + 1> last_component_;
    result<void> reached_;
};

/// A name that no other process creates: ".sluice-" and 64 random bits.
class temporary_name {
public:
    temporary_name() noexcept;
    [[nodiscard]] const char* c_str() const noexcept { return text_.data(); }

private:
    std::array<char, 32> text_{};
};

/// "/proc/self/fd/N": the only name that every open inode has.
class descriptor_path {
public:
    explicit descriptor_path(int descriptor) noexcept;
    [[nodiscard]] const char* c_str() const noexcept { return text_.data(); }

private:
    std::array<char, 32> text_{};
};

}  // namespace sluice::io
