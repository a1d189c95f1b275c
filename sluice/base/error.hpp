#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace sluice {

/// The reason for a failure: the cause (an errno value), the operation, and its subject.
///
/// Two words, trivially copyable, so that a result is as cheap as an integer. A path does not fit:
/// it is stored in a process-wide ring of the last `recorded_paths` failures, and the error has its
/// number. If the ring has wrapped since, the message states that instead of naming a wrong path.
/// Thread safety: a value; storing a path and reading it back are safe from any thread.
class error {
public:
    static constexpr int no_descriptor = -1;
    static constexpr unsigned recorded_paths = 256;       // the number of remembered
                                                          // failures with a path
    static constexpr unsigned recorded_path_bytes = 248;  // a longer path keeps only its end

    /// `operation` must be a string literal or otherwise outlive the error.
    constexpr error(int code, const char* operation, int descriptor = no_descriptor) noexcept
        : operation_(operation), code_(code), subject_(descriptor) {}
    constexpr error(std::errc code, const char* operation, int descriptor = no_descriptor) noexcept
        : error(static_cast<int>(code), operation, descriptor) {}

    /// Returns an error about a path. Allocates: nothing (the path is copied into the ring).
    [[nodiscard]] static error with_path(int code, const char* operation, std::string_view path) noexcept;

    /// Returns an error with the calling thread's errno as the cause.
    [[nodiscard]] static error last(const char* operation, int descriptor = no_descriptor) noexcept {
        return {errno, operation, descriptor};
    }

    [[nodiscard]] constexpr int code() const noexcept { return code_; }
    [[nodiscard]] constexpr const char* operation() const noexcept { return operation_; }
    [[nodiscard]] constexpr int descriptor() const noexcept {
        return subject_ >= 0 ? subject_ : no_descriptor;
    }

    /// Returns "/srv/x: open: No such file or directory", or "descriptor 7: read: Input/output
    /// error": the subject, what failed, and why. Allocates: the string.
    [[nodiscard]] std::string message() const;

    /// Returns the message without the subject, for a message about another subject: "open: No such
    /// file or directory". Allocates: the string.
    [[nodiscard]] std::string reason() const { return error(code_, operation_).message(); }

    /// Explicit, because the operation and the path are lost.
    [[nodiscard]] explicit operator std::error_code() const noexcept {
        return {code_, std::generic_category()};
    }

    /// Errors are compared by cause alone.
    [[nodiscard]] friend constexpr bool operator==(const error& a, std::errc b) noexcept {
        return a.code_ == static_cast<int>(b);
    }
    [[nodiscard]] friend constexpr bool operator==(const error& a, const error& b) noexcept {
        return a.code_ == b.code_;
    }

private:
    const char* operation_;
    std::int32_t code_;
    std::int32_t subject_;  // >= 0: a descriptor; -1: nothing; below: -(2 + number of a noted path)
};

static_assert(sizeof(error) == 16);

}  // namespace sluice
