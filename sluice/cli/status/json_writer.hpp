#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::cli {

/// Writes one JSON document, in the order of the calls, without white space. For a long document,
/// take() returns the text so far, which can be sent while the rest is written.
class json_writer {
public:
    json_writer& begin_object() { return open('{'); }
    json_writer& end_object() { return close('}'); }
    json_writer& begin_array() { return open('['); }
    json_writer& end_array() { return close(']'); }
    /// Writes the key of the next value.
    json_writer& key(std::string_view name);

    json_writer& value(std::string_view text);
    json_writer& value(const char* text) { return value(std::string_view(text)); }
    json_writer& value(bool is);
    json_writer& value(std::unsigned_integral auto number)
        requires(not std::same_as<decltype(number), bool>)
    {
        return raw(std::to_string(number));
    }
    /// Writes a number with one digit after the decimal point; null if it is not finite.
    json_writer& value(double number);
    json_writer& null() { return raw("null"); }

    template <class T>
    json_writer& member(std::string_view name, const T& what) {
        key(name);
        return value(what);
    }

    [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

private:
    json_writer& open(char bracket);
    json_writer& close(char bracket);
    json_writer& raw(std::string_view text);
    void separate();

    std::string text_;
    bool needs_comma_ = false;
};

}  // namespace sluice::cli
