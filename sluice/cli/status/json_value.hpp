#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

/// A parsed JSON document (RFC 8259). A value that is missing or of another type reads as empty, so
/// that documents of newer servers can be displayed.
class json_value {
public:
    static constexpr std::size_t depth_max = 16;

    /// Returns std::nullopt if `text` is not exactly one document, or is nested deeper than
    /// depth_max.
    /// Allocates: the document. Complexity: linear.
    [[nodiscard]] static std::optional<json_value> parse(std::string_view text);

    /// Returns a member of an object. Complexity: linear in its members.
    [[nodiscard]] const json_value& operator[](std::string_view name) const noexcept;
    /// Returns the elements of an array.
    [[nodiscard]] const std::vector<json_value>& elements() const noexcept { return elements_; }
    /// Returns the names of the members of an object, in their order.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] double number() const noexcept { return number_; }
    /// Returns an unsigned integer, with all 64 bits; 0 for any other value.
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] bool is_true() const noexcept { return kind_ == kind::boolean and count_ != 0; }
    [[nodiscard]] bool is_number() const noexcept { return kind_ == kind::number; }
    [[nodiscard]] bool is_object() const noexcept { return kind_ == kind::object; }

private:
    friend class json_reader;
    enum class kind : std::uint8_t { null, boolean, number, string, array, object };

    kind kind_ = kind::null;
    std::uint64_t count_ = 0;
    double number_ = 0;
    std::string text_;
    std::vector<std::string> names_;  // names of the members of an object; elements_ has their
                                      // values
    std::vector<json_value> elements_;
};

}  // namespace sluice::cli
