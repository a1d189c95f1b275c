#include "sluice/cli/fat/legal_name.hpp"

#include <fmt/core.h>

#include <span>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/codec/long_name.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view forbidden = "\"*/:<>?\\|";
// A longer suffix is part of the name: "notes.of the meeting on Monday".
constexpr std::size_t extension_bytes_max = 12;

enum class kind : std::uint8_t { legal, control, listed, not_utf8 };

/// Iterates over a name as FAT reads it.
class name_reader {
public:
    explicit name_reader(std::string_view name) : name_(name) {}

    [[nodiscard]] bool is_at_end() const noexcept { return at_ == name_.size(); }
    struct part {
        std::string_view bytes;
        kind what = kind::legal;
    };
    [[nodiscard]] part next() {
        const name_character character = character_at(name_, at_);
        const part found{.bytes = name_.substr(at_, character.length), .what = kind_of(character.point)};
        at_ += character.length;
        after_high_ = character.point >= 0xd800 and character.point <= 0xdbff;
        return found;
    }

private:
    [[nodiscard]] kind kind_of(char32_t point) const noexcept {
        if (point < 0x20) return kind::control;
        if (point < 0x80 and forbidden.contains(static_cast<char>(point))) return kind::listed;
        // Two surrogates that form a pair are a second encoding of a character.
        const bool is_pair = after_high_ and point >= 0xdc00 and point <= 0xdfff;
        return point > 0x10ffff or is_pair ? kind::not_utf8 : kind::legal;
    }

    std::string_view name_;
    std::size_t at_ = 0;
    bool after_high_ = false;
};

std::size_t units_of(std::string_view name) {
    return fat::to_utf16(name).size();
}

void append_encoded(std::string& into, std::string_view bytes) {
    for (const char each : bytes)
        into += fmt::format("%{:02X}", static_cast<unsigned char>(each));
}

std::size_t extension_at(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    const bool is_extension = dot != name.npos and dot != 0 and name.size() - dot <= extension_bytes_max;
    return is_extension ? dot : name.size();
}

void drop_last_character(std::string& text) {
    ENSURE(not text.empty());
    while (text.size() > 1 and (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80)
        text.pop_back();
    text.pop_back();
}

// Returns the base, shortened so that everything fits, the suffix, and the extension.
std::string with_suffix(std::string_view name, const std::string& suffix) {
    const std::size_t dot = extension_at(name);
    std::string base(name.substr(0, dot));
    const std::string end = suffix + std::string(name.substr(dot));
    const std::size_t end_units = units_of(end);
    while (units_of(base) + end_units > fat::long_name_units_max)
        drop_last_character(base);
    return base + end;
}

}  // namespace

std::optional<std::string> fat_name_problem(std::string_view name) {
    for (name_reader reader(name); not reader.is_at_end();) {
        const auto part = reader.next();
        if (part.what == kind::control)
            return fmt::format("the control character 0x{:02x} is not allowed",
                               static_cast<unsigned char>(part.bytes.front()));
        if (part.what == kind::listed) return fmt::format("'{}' is not allowed", part.bytes);
        if (part.what == kind::not_utf8) return "the name is not UTF-8";
    }
    if (name.ends_with('.') or name.ends_with(' ')) return "a name cannot end with a dot or a space";
    if (const std::size_t units = units_of(name); units > fat::long_name_units_max)
        return fmt::format("the name has {} UTF-16 units, at most {} are allowed", units,
                           fat::long_name_units_max);
    if (not vfs::check_name(name)) return "the name is not allowed";
    return std::nullopt;
}

std::string legal_fat_name(std::string_view name) {
    ENSURE(not name.empty());
    std::string made;
    for (name_reader reader(name); not reader.is_at_end();) {
        const auto part = reader.next();
        const bool is_bad_end = reader.is_at_end() and (part.bytes == "." or part.bytes == " ");
        if (part.what == kind::legal and part.bytes != "%" and not is_bad_end)
            made += part.bytes;
        else
            append_encoded(made, part.bytes);
    }
    if (units_of(made) > fat::long_name_units_max)
        made =
            with_suffix(made, fmt::format("~{:08X}", fat::crc32(bytes_view(std::as_bytes(std::span(name))))));
    if (not fat_name_problem(made)) return made;
    made.clear();  // dots of the private range: all bytes are encoded
    append_encoded(made, name);
    ENSURE(not fat_name_problem(made));
    return made;
}

std::string numbered_fat_name(std::string_view name, std::size_t number) {
    return with_suffix(name, fmt::format("~{}", number));
}

bool may_be_generated_short_name(std::string_view name) {
    constexpr std::size_t short_name_units_max = 12;
    return name.contains('~') and units_of(name) <= short_name_units_max;
}

}  // namespace sluice::cli
