#include "sluice/vfs/host/name/short_name_record.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

constexpr std::uint8_t version = 1;
constexpr std::uint8_t kind_used_up = plain_short_name_attempts;  // below: the attempt
constexpr std::uint8_t kind_chosen = 5;

struct entry_head {
    le32 number;
    le8 kind;
};
static_assert(sizeof(entry_head) == 5 and alignof(entry_head) == 1);

using chosen_name = std::array<std::byte, short_name::characters_max>;  // zeros after the name

std::uint8_t kind_of(const short_name_record::entry& of) noexcept {
    if (of.what == short_name_record::kind::chosen) return kind_chosen;
    if (of.what == short_name_record::kind::used_up) return kind_used_up;
    ENSURE(of.attempt < plain_short_name_attempts, "only short names without a hash are recorded");
    return of.attempt;
}

template <class Part>
void append(std::vector<std::byte>& to, const Part& part) {
    const auto bytes = bytes_of(part);
    to.insert(to.end(), bytes.begin(), bytes.end());
}

void append(std::vector<std::byte>& to, const short_name_record::entry& one) {
    const bool is_chosen = one.what == short_name_record::kind::chosen;
    const std::size_t size = sizeof(entry_head) + (is_chosen ? sizeof(chosen_name) : 0);
    if (to.size() + size > short_name_record_bytes_max) return;
    append(to, entry_head{.number = le32(one.number), .kind = le8(kind_of(one))});
    if (not is_chosen) return;
    chosen_name text{};
    std::ranges::transform(one.name.view(), text.begin(), [](char c) { return static_cast<std::byte>(c); });
    append(to, text);
}

// Empty, or a short name; std::nullopt for other text.
std::optional<short_name> name_from(const chosen_name& bytes) noexcept {
    std::array<char, short_name::characters_max> text{};
    std::ranges::transform(bytes, text.begin(), [](std::byte b) { return static_cast<char>(b); });
    std::string_view name(text.data(), text.size());
    name = name.substr(0, name.find('\0'));
    if (not name.empty() and not is_short_name(name)) return std::nullopt;
    return short_name(name);
}

}  // namespace

std::uint32_t record_number(std::string_view name) {
    std::uint32_t hash = 0x811c'9dc5U;  // FNV-1a
    for (const char each : fold(name))
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x0100'0193U;
    return hash;
}

std::vector<std::byte> encode_short_names(const short_name_record& what) {
    std::vector<std::byte> bytes;
    if (what.entries.empty()) return bytes;
    append(bytes, le8(version));
    for (const bool is_chosen : {true, false})
        for (const short_name_record::entry& each : what.entries)
            if ((each.what == short_name_record::kind::chosen) == is_chosen) append(bytes, each);
    ENSURE(bytes.size() <= short_name_record_bytes_max, "a record leaves room for other attributes");
    return bytes;
}

bool has_room_for_choices(const short_name_record& what) noexcept {
    const auto choices =
        std::ranges::count(what.entries, short_name_record::kind::chosen, &short_name_record::entry::what);
    const std::size_t each = sizeof(entry_head) + sizeof(chosen_name);
    return sizeof(version) + static_cast<std::size_t>(choices) * each <= short_name_record_bytes_max;
}

short_name_record decode_short_names(bytes_view bytes) {
    using kind = short_name_record::kind;
    short_name_record found;
    // Other programs can write attributes that are much larger.
    if (bytes.size() > short_name_record_bytes_max) return found;
    const auto begin = bytes.take<le8>();
    if (not begin or begin->value() != version) return found;
    std::size_t at = sizeof *begin;
    while (const auto head = bytes.take_at<entry_head>(at)) {
        at += sizeof *head;
        const std::uint8_t code = head->kind.value();
        short_name_record::entry one{.number = head->number.value()};
        if (code == kind_chosen) {
            const auto text = bytes.take_at<chosen_name>(at);
            if (not text) break;
            at += sizeof *text;
            const auto name = name_from(*text);
            if (not name) continue;
            one.what = kind::chosen;
            one.name = *name;
        } else if (code == kind_used_up) {
            one.what = kind::used_up;
        } else if (code < kind_used_up) {
            one.attempt = code;
        } else {
            break;
        }
        found.entries.push_back(one);
    }
    return found;
}

}  // namespace sluice::vfs
