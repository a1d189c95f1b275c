#include "sluice/fat/codec/label.hpp"

namespace sluice::fat {
namespace {

constexpr std::string_view forbidden = "\"*+,./:;<=>?[\\]|";

char upper(char c) noexcept {
    return c >= 'a' and c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_allowed(char c) noexcept {
    return c >= ' ' and c < 0x7f and forbidden.find(c) == forbidden.npos;
}

}  // namespace

std::expected<label_bytes, std::string> encode_label(std::string_view text) {
    if (text.empty()) return no_label;
    label_bytes label;
    if (text.size() > label.size())
        return std::unexpected("use at most 11 bytes, not " + std::to_string(text.size()));
    if (text.front() == ' ')
        return std::unexpected(std::string("use a label that does not begin with a space"));
    label.fill(' ');
    for (std::size_t i = 0; i != text.size(); ++i) {
        if (not is_allowed(text[i]))
            return std::unexpected("use only ASCII characters, and none of " + std::string(forbidden));
        label[i] = upper(text[i]);
    }
    return label;
}

std::string label_text(const label_bytes& label) {
    if (label == no_label) return {};
    std::string text(label.data(), label.size());
    text.erase(text.find_last_not_of(std::string_view(" \0", 2)) + 1);
    for (char& c : text)
        if (c < ' ' or c >= 0x7f) c = '?';
    return text;
}

}  // namespace sluice::fat
