#include "sluice/cli/migration/smb_values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "sluice/cli/migration/smb_conf.hpp"

namespace sluice::cli {
namespace {

using conversion = std::expected<smb_converted, std::string>;

template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text, int base = 10) noexcept {
    Number value{};
    const auto [at, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (code != std::errc() or at != text.data() + text.size()) return std::nullopt;
    return value;
}

constexpr std::string_view group_marks = "@+&";

// Returns the name without the characters that mark a group.
[[nodiscard]] std::string account_name(std::string_view text) {
    const std::size_t first = text.find_first_not_of(group_marks);
    return first == std::string_view::npos ? "" : std::string(text.substr(first));
}

// Returns whether the element names a user or a group that the server cannot have: one of a domain,
// which the user or the group with that name here need not be, or a netgroup.
[[nodiscard]] bool is_elsewhere(std::string_view text) noexcept {
    if (text.find_first_of("\\/") != std::string_view::npos) return true;
    const std::string_view marks = text.substr(0, text.find_first_not_of(group_marks));
    return not marks.empty() and marks.find_first_of("@+") == std::string_view::npos;
}

[[nodiscard]] conversion users_of(std::string_view value) {
    smb_converted result;
    std::vector<std::string> names;
    for (const std::string& each : smb_list(value)) {
        const std::string name = account_name(each);
        if (name.empty() or name.contains('%') or is_elsewhere(each))
            result.skipped.push_back(each);
        else
            names.push_back(group_marks.contains(each.front()) ? "@" + name : name);
    }
    result.value = std::move(names);
    return result;
}

[[nodiscard]] conversion patterns_of(std::string_view value) {
    std::vector<std::string> patterns;
    while (not value.empty()) {
        const std::size_t slash = value.find('/');
        if (slash != 0) patterns.emplace_back(value.substr(0, slash));
        value.remove_prefix(slash == std::string_view::npos ? value.size() : slash + 1);
    }
    if (patterns.empty()) return std::unexpected("the list is empty");
    return smb_converted{.value = std::move(patterns)};
}

[[nodiscard]] conversion referral_of(std::string_view value) {
    std::vector<std::string> targets;
    for (std::string each : smb_list(value)) {
        std::ranges::replace(each, '\\', '/');
        targets.push_back((each.starts_with("//") ? "" : each.starts_with('/') ? "/" : "//") + each);
    }
    if (targets.empty()) return std::unexpected("the list is empty");
    return smb_converted{.value = std::move(targets)};
}

[[nodiscard]] conversion plain(std::string_view value, setting_kind kind, bool is_opposite) {
    const auto is = smb_boolean(value);
    switch (kind) {
        case setting_kind::boolean:
            if (not is) return std::unexpected(is.error());
            return smb_converted{.value = *is != is_opposite};
        case setting_kind::on_off: {
            // "mangled names" has further values, which mean that there are short names.
            const bool is_on = is ? *is != is_opposite : true;
            return smb_converted{.value = std::string(is_on ? "on" : "off")};
        }
        case setting_kind::number: {
            const auto number = number_of<std::uint64_t>(value);
            if (not number) return std::unexpected("use a number");
            return smb_converted{.value = *number};
        }
        case setting_kind::list:
            return smb_converted{.value = smb_list(value)};
        case setting_kind::text:
        case setting_kind::other:
            return smb_converted{.value = std::string(value)};
    }
    return std::unexpected("the type of the setting is unknown");
}

}  // namespace

std::expected<smb_converted, std::string> converted_smb_value(std::string_view value, smb_rule rule,
                                                              setting_kind kind) {
    switch (rule) {
        case smb_rule::copied:
            return plain(value, kind, false);
        case smb_rule::opposite:
            return plain(value, kind, true);
        case smb_rule::users:
            return users_of(value);
        case smb_rule::patterns:
            return patterns_of(value);
        case smb_rule::referral:
            return referral_of(value);
        case smb_rule::account: {
            std::string name = account_name(value);
            if (name.empty() or name.contains('%')) return std::unexpected("it depends on the client");
            return smb_converted{.value = std::move(name)};
        }
        case smb_rule::megabytes: {
            const auto megabytes = number_of<std::uint32_t>(value);
            if (not megabytes) return std::unexpected("use a number of megabytes");
            return smb_converted{.value = fmt::format("{}M", *megabytes)};
        }
        case smb_rule::hosts:
        case smb_rule::file_mode:
        case smb_rule::converted:
        case smb_rule::standard:
        case smb_rule::none:
        case smb_rule::restricting:
            break;
    }
    return std::unexpected("it has no setting");
}

std::expected<std::string, std::string> smb_mode(std::string_view mask, std::string_view force,
                                                 const smb_mode_rule& rule) {
    const auto kept = number_of<unsigned>(mask, 8);
    const auto added = number_of<unsigned>(force, 8);
    if (not kept or not added or *kept > 07777 or *added > 07777)
        return std::unexpected("use an octal number");
    const unsigned mode = ((rule.usual & *kept) | *added) & rule.permitted;
    if ((mode & rule.needed) != rule.needed) return std::unexpected("the owner would lack rights");
    return fmt::format("{:04o}", mode);
}

}  // namespace sluice::cli
