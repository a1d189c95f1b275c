#include "sluice/cli/status/json_value.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace sluice::cli {

// A recursive descent, as deep as depth_max; every function says whether what it looks for is there.
class json_reader {
public:
    explicit json_reader(std::string_view text) noexcept : left_(text) {}

    [[nodiscard]] bool read_document(json_value& into) {
        return read_value(into, 0) and (skip_space(), left_.empty());
    }

private:
    using kind = json_value::kind;

    void skip_space() noexcept {
        left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size()));
    }
    [[nodiscard]] bool take(char wanted) noexcept {
        skip_space();
        return take_here(wanted);
    }
    [[nodiscard]] bool take_here(char wanted) noexcept {
        if (not left_.starts_with(wanted)) return false;
        left_.remove_prefix(1);
        return true;
    }
    [[nodiscard]] bool take_word(std::string_view word) noexcept {
        if (not left_.starts_with(word)) return false;
        left_.remove_prefix(word.size());
        return true;
    }

    [[nodiscard]] bool read_value(json_value& into, std::size_t depth) {
        if (depth == json_value::depth_max) return false;
        skip_space();
        if (left_.empty()) return false;
        switch (left_.front()) {
            case '{':
                return read_object(into, depth);
            case '[':
                return read_array(into, depth);
            case '"':
                into.kind_ = kind::string;
                return read_string(into.text_);
            case 'n':
                return take_word("null");
            case 't':
            case 'f':
                into.kind_ = kind::boolean;
                into.count_ = left_.front() == 't' ? 1 : 0;
                return take_word(into.count_ != 0 ? "true" : "false");
            default:
                return read_number(into);
        }
    }

    [[nodiscard]] bool read_object(json_value& into, std::size_t depth) {
        into.kind_ = kind::object;
        (void)take('{');
        if (take('}')) return true;
        do {
            skip_space();
            if (not left_.starts_with('"') or not read_string(into.names_.emplace_back())) return false;
            if (not take(':') or not read_value(into.elements_.emplace_back(), depth + 1)) return false;
        } while (take(','));
        return take('}');
    }

    [[nodiscard]] bool read_array(json_value& into, std::size_t depth) {
        into.kind_ = kind::array;
        (void)take('[');
        if (take(']')) return true;
        do {
            if (not read_value(into.elements_.emplace_back(), depth + 1)) return false;
        } while (take(','));
        return take(']');
    }

    [[nodiscard]] bool read_string(std::string& into) {
        (void)take_here('"');
        while (not left_.empty()) {
            const char c = left_.front();
            left_.remove_prefix(1);
            if (c == '"') return true;
            if (static_cast<unsigned char>(c) < 0x20) return false;
            if (c != '\\')
                into += c;
            else if (not read_escape(into))
                return false;
        }
        return false;
    }

    [[nodiscard]] bool read_escape(std::string& into) {
        if (left_.empty()) return false;
        const char c = left_.front();
        left_.remove_prefix(1);
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
        if (const std::size_t at = names.find(c); at != std::string_view::npos) {
            into += meant[at];
            return true;
        }
        std::uint32_t point = 0;
        if (c != 'u' or not read_unit(point)) return false;
        std::uint32_t low = 0;
        if (point >= 0xd800 and point < 0xdc00) {
            if (not take_word("\\u") or not read_unit(low) or low < 0xdc00 or low > 0xdfff) return false;
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        } else if (point >= 0xdc00 and point < 0xe000) {
            return false;
        }
        append_utf8(into, point);
        return true;
    }

    [[nodiscard]] bool read_unit(std::uint32_t& into) noexcept {
        if (left_.size() < 4) return false;
        const char* const end = left_.data() + 4;
        if (std::from_chars(left_.data(), end, into, 16).ptr != end) return false;
        left_.remove_prefix(4);
        return true;
    }

    static void append_utf8(std::string& into, std::uint32_t point) {
        const auto rest = [&](unsigned shift) { into += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
        if (point < 0x80) {
            into += static_cast<char>(point);
        } else if (point < 0x800) {
            into += static_cast<char>(0xc0 | point >> 6);
            rest(0);
        } else if (point < 0x10000) {
            into += static_cast<char>(0xe0 | point >> 12);
            rest(6);
            rest(0);
        } else {
            into += static_cast<char>(0xf0 | point >> 18);
            rest(12);
            rest(6);
            rest(0);
        }
    }

    [[nodiscard]] std::size_t digits_at(std::size_t at) const noexcept {
        std::size_t count = 0;
        while (at + count < left_.size() and left_[at + count] >= '0' and left_[at + count] <= '9')
            ++count;
        return count;
    }

    [[nodiscard]] bool read_number(json_value& into) {
        std::size_t at = left_.starts_with('-') ? 1 : 0;
        const std::size_t whole = digits_at(at);
        if (whole == 0 or (whole > 1 and left_[at] == '0')) return false;
        at += whole;
        if (at < left_.size() and left_[at] == '.') {
            const std::size_t fraction = digits_at(at + 1);
            if (fraction == 0) return false;
            at += 1 + fraction;
        }
        if (at < left_.size() and (left_[at] == 'e' or left_[at] == 'E')) {
            ++at;
            if (at < left_.size() and (left_[at] == '+' or left_[at] == '-')) ++at;
            const std::size_t exponent = digits_at(at);
            if (exponent == 0) return false;
            at += exponent;
        }
        into.kind_ = kind::number;
        into.text_ = left_.substr(0, at);
        left_.remove_prefix(at);
        into.number_ = std::strtod(into.text_.c_str(), nullptr);
        const char* const end = into.text_.data() + into.text_.size();
        if (std::from_chars(into.text_.data(), end, into.count_).ptr != end) into.count_ = 0;
        return true;
    }

    std::string_view left_;
};

std::optional<json_value> json_value::parse(std::string_view text) {
    json_value document;
    if (not json_reader(text).read_document(document)) return std::nullopt;
    return document;
}

const json_value& json_value::operator[](std::string_view name) const noexcept {
    static const json_value nothing;
    const auto found = std::ranges::find(names_, name);
    return found == names_.end() ? nothing : elements_[static_cast<std::size_t>(found - names_.begin())];
}

}  // namespace sluice::cli
