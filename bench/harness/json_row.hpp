#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

/// One line of JSON Lines: a flat object, its fields in the order in which they were added. Numbers
/// keep six significant digits, more than any measurement here has; a number that is not finite
/// becomes null.
class json_row {
public:
    json_row& add(std::string_view name, std::string_view value);
    json_row& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
    json_row& add(std::string_view name, double value);
    json_row& add(std::string_view name, std::unsigned_integral auto value) {
        return add_raw(name, std::to_string(value));
    }

    /// Returns the object, without a line end.
    [[nodiscard]] std::string text() const { return '{' + fields_ + '}'; }

private:
    json_row& add_raw(std::string_view name, std::string_view value);

    std::string fields_;
};

}  // namespace sluice::bench
