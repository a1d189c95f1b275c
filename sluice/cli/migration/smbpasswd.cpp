#include "sluice/cli/migration/smbpasswd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t line_bytes_max = 4096;
constexpr std::size_t hash_bytes = 16;

// Removes the first field and its colon from `rest`, and returns it; std::nullopt without a colon.
[[nodiscard]] std::optional<std::string_view> next_field(std::string_view& rest) noexcept {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view field = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
    return field;
}

[[nodiscard]] std::optional<smb::auth::nt_hash> hash_of(std::string_view digits) noexcept {
    smb::auth::secret_bytes<hash_bytes> bytes;
    if (digits.size() != 2 * hash_bytes) return std::nullopt;
    for (std::size_t i = 0; i != hash_bytes; ++i) {
        unsigned value = 0;
        const char* const from = digits.data() + 2 * i;
        const auto [at, code] = std::from_chars(from, from + 2, value, 16);
        if (code != std::errc() or at != from + 2) return std::nullopt;
        bytes.mutable_view()[i] = static_cast<std::byte>(value);
    }
    return smb::auth::nt_hash(std::move(bytes));
}

// Returns whether the field has a form that the file uses in place of a hash.
[[nodiscard]] bool is_without_hash(std::string_view field) noexcept {
    return field.starts_with("NO PASSWORD") or
           (field.size() == 2 * hash_bytes and std::ranges::all_of(field, [](char c) { return c == 'X'; }));
}

[[nodiscard]] bool is_number(std::string_view text) noexcept {
    return not text.empty() and std::ranges::all_of(text, [](char c) { return c >= '0' and c <= '9'; });
}

[[nodiscard]] smbpasswd_line skipped(smbpasswd_skip why, std::string_view name) {
    return {.skip = why, .name = std::string(name), .hash = {}};
}

}  // namespace

smbpasswd_line parse_smbpasswd(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos or line.starts_with('#'))
        return skipped(smbpasswd_skip::blank, {});
    std::string_view rest = line;
    const auto name = next_field(rest);
    const auto number = next_field(rest);
    const auto lan_manager = next_field(rest);
    const std::string_view windows = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), windows.size() + 1));
    const bool has_fields = line.size() <= line_bytes_max and name and not name->empty() and number and
                            is_number(*number) and lan_manager and not windows.empty();
    if (not has_fields) return skipped(smbpasswd_skip::malformed, {});
    // Older files have no flags, but the time of the last change.
    std::string_view flags;
    if (rest.starts_with('[')) flags = rest.substr(1, rest.find(']') - 1);
    if (name->ends_with('$') or flags.find_first_of("WSI") != std::string_view::npos)
        return skipped(smbpasswd_skip::machine, *name);
    if (flags.contains('D')) return skipped(smbpasswd_skip::disabled, *name);
    if (flags.contains('L')) return skipped(smbpasswd_skip::locked, *name);
    if (flags.contains('N') or is_without_hash(windows)) return skipped(smbpasswd_skip::no_password, *name);
    auto hash = hash_of(windows);
    if (not hash) return skipped(smbpasswd_skip::malformed, {});
    if (const auto empty = smb::auth::nt_hash::of_password("");
        empty and smb::auth::equal_in_constant_time(hash->view(), empty->view()))
        return skipped(smbpasswd_skip::no_password, *name);
    return {.skip = smbpasswd_skip::none, .name = std::string(*name), .hash = *std::move(hash)};
}

std::string_view text_of(smbpasswd_skip skip) noexcept {
    switch (skip) {
        case smbpasswd_skip::none:
        case smbpasswd_skip::blank:
            return "";
        case smbpasswd_skip::malformed:
            return "not NAME:UID:LM:NT:[FLAGS]:LCT";
        case smbpasswd_skip::machine:
            return "the account is of a computer or a domain";
        case smbpasswd_skip::disabled:
            return "the account is disabled";
        case smbpasswd_skip::locked:
            return "the account is locked, after too many wrong passwords";
        case smbpasswd_skip::no_password:
            return "the account has no password";
    }
    ENSURE(false, "every reason has a text");
    return "";
}

bool is_tdb(std::string_view beginning) noexcept {
    return beginning.starts_with("TDB file") or beginning.starts_with("{\nkey(");
}

}  // namespace sluice::cli
