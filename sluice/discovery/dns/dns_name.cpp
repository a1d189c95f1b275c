#include "sluice/discovery/dns/dns_name.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"

namespace sluice::discovery {

namespace {

// Lengths of labels are below 'A', so the comparison of a whole name may fold them as well.
[[nodiscard]] char lower(char c) noexcept {
    return c >= 'A' and c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

[[nodiscard]] bool is_continuation(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

}  // namespace

std::optional<dns_name> dns_name::parse(std::string_view dotted) {
    dns_name name;
    while (not dotted.empty()) {
        const std::size_t end = std::min(dotted.find('.'), dotted.size());
        if (not name.append(dotted.substr(0, end))) return std::nullopt;
        dotted.remove_prefix(std::min(end + 1, dotted.size()));
    }
    return name;
}

bool dns_name::append(std::string_view label) {
    if (label.empty() or label.size() > limits::dns_label_bytes_max) return false;
    if (label.size() + 2 > limits::dns_name_bytes_max - labels_.size()) return false;
    labels_ += static_cast<char>(label.size());
    labels_ += label;
    return true;
}

bool dns_name::append(const dns_name& suffix) {
    if (suffix.labels_.size() + 1 > limits::dns_name_bytes_max - labels_.size()) return false;
    labels_ += suffix.labels_;
    return true;
}

std::string_view dns_name::first_label() const noexcept {
    if (labels_.empty()) return {};
    const auto length = static_cast<unsigned char>(labels_.front());
    ENSURE(length < labels_.size(), "a name consists of complete labels");
    return std::string_view(labels_).substr(1, length);
}

bool dns_name::is_same_as(const dns_name& other) const noexcept {
    return std::ranges::equal(labels_, other.labels_, {}, lower, lower);
}

std::string label_with_suffix(std::string_view base, std::string_view suffix) {
    ENSURE(suffix.size() < limits::dns_label_bytes_max);
    std::size_t kept = std::min(base.size(), limits::dns_label_bytes_max - suffix.size());
    if (kept != base.size())
        while (kept != 0 and is_continuation(base[kept]))
            --kept;
    return std::string(base.substr(0, kept)).append(suffix);
}

}  // namespace sluice::discovery
