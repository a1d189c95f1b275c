#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::cli {

/// Writes one JSON document, in the order in which it is told, without white space. Whoever has much to say
/// takes what there is by take() and sends it meanwhile.
class json_writer {
public:
    json_writer& begin_object() { return open('{'); }
    json_writer& end_object() { return close('}'); }
    json_writer& begin_array() { return open('['); }
    json_writer& end_array() { return close(']'); }
    /// What comes next is the value of that key.
    json_writer& key(std::string_view name);

    json_writer& value(std::string_view text);
    json_writer& value(const char* text) { return value(std::string_view(text)); }
    json_writer& value(bool is);
    json_writer& value(std::unsigned_integral auto number)
        requires(not std::same_as<decltype(number), bool>)
    {
        return raw(std::to_string(number));
    }
    /// With one digit behind the point; what is not finite is null.
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
