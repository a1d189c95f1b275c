#pragma once

#include <expected>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sluice/base/error.hpp"

/// The exception that result::value() throws. Its text is that of error::message(): the operation,
/// the path or descriptor, and the cause. It stores the text, so that later failures do not change
/// it. The standard allows this specialisation of its class for a program's own type
/// ([namespace.std]), so result stays a std::expected. Thread safety: a value. Allocates: the text.
template <>
class std::bad_expected_access<sluice::error> : public std::bad_expected_access<void> {
public:
    explicit bad_expected_access(sluice::error why) : why_(why), text_(why.message()) {}

    [[nodiscard]] const char* what() const noexcept override { return text_.what(); }
    /// Returns the errno value, as other exceptions of the standard library do.
    [[nodiscard]] std::error_code code() const noexcept { return std::error_code(why_); }

    [[nodiscard]] sluice::error& error() & noexcept { return why_; }
    [[nodiscard]] const sluice::error& error() const& noexcept { return why_; }
    [[nodiscard]] sluice::error&& error() && noexcept { return std::move(why_); }
    [[nodiscard]] const sluice::error&& error() const&& noexcept { return std::move(why_); }

private:
    sluice::error why_;
    std::runtime_error text_;  // for its string, which is copied without throwing
};

namespace sluice {

/// A value or the error that prevented it. Expected failures are returned this way; bugs stop at
/// ENSURE. value() throws bad_result if there is none.
template <class T>
using result = std::expected<T, error>;

using bad_result = std::bad_expected_access<error>;

/// Returns an error as a result, shorter than naming std::unexpected at every return.
[[nodiscard]] inline std::unexpected<error> failure(error why) noexcept {
    return std::unexpected<error>(why);
}

}  // namespace sluice
