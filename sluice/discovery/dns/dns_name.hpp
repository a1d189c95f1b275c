#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::discovery {

/// A domain name: labels of 1 to 63 arbitrary bytes, at most 255 bytes in all (RFC 1035 section
/// 3.1). Two names are equal if they differ at most in the case of ASCII letters. Thread safety: a
/// value. Allocates: its bytes.
class dns_name {
public:
    /// The root.
    dns_name() noexcept = default;

    /// Returns the name with these labels, separated by dots; no label of it may contain one.
    /// std::nullopt if it is too long or has an empty label.
    [[nodiscard]] static std::optional<dns_name> parse(std::string_view dotted);

    /// Appends a label at the end. Returns false, and changes nothing, if it is empty or too long.
    [[nodiscard]] bool append(std::string_view label);
    /// Appends all labels of another name. Returns false, and changes nothing, if they do not fit.
    [[nodiscard]] bool append(const dns_name& suffix);

    /// Returns each label after a byte with its length, without the empty label at the end.
    [[nodiscard]] std::string_view labels() const noexcept { return labels_; }
    /// Returns the labels with the empty one at the end: the uncompressed form in messages.
    [[nodiscard]] std::string wire() const { return labels_ + '\0'; }
    /// Returns the first label; empty for the root.
    [[nodiscard]] std::string_view first_label() const noexcept;

    [[nodiscard]] friend bool operator==(const dns_name& a, const dns_name& b) noexcept {
        return a.is_same_as(b);
    }

private:
    [[nodiscard]] bool is_same_as(const dns_name& other) const noexcept;

    std::string labels_;
};

/// Returns a label of at most 63 bytes: `base`, and `suffix` after it. `base` is shortened at the
/// boundary of a UTF-8 character if both do not fit. The suffix has less than 63 bytes.
[[nodiscard]] std::string label_with_suffix(std::string_view base, std::string_view suffix);

}  // namespace sluice::discovery
