#include "sluice/cli/status/json_value.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::cli {

// Builds a document from the events of the parser. Every function returns whether to continue.
class json_reader final : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit json_reader(json_value& document) noexcept : document_(document) {}

    bool null() override { return next() != nullptr; }
    bool boolean(bool is) override {
        json_value* const made = next(kind::boolean);
        made->count_ = is ? 1 : 0;
        return true;
    }
    bool number_integer(number_integer_t number) override {
        next(kind::number)->number_ = static_cast<double>(number);
        return true;
    }
    bool number_unsigned(number_unsigned_t number) override {
        json_value* const made = next(kind::number);
        made->number_ = static_cast<double>(number);
        made->count_ = number;
        return true;
    }
    bool number_float(number_float_t number, const string_t&) override {
        next(kind::number)->number_ = number;
        return true;
    }
    bool string(string_t& text) override {
        next(kind::string)->text_ = std::move(text);
        return true;
    }
    bool binary(binary_t&) override { return false; }  // for other formats than JSON
    bool key(string_t& name) override {
        open_.back()->names_.push_back(std::move(name));
        return true;
    }
    bool start_object(std::size_t) override { return open(kind::object); }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(kind::array); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
        return false;
    }

private:
    using kind = json_value::kind;

    // Returns the place for the next value. A value is stored in the vector of its parent, which
    // does not grow while that value is open.
    [[nodiscard]] json_value* next(kind is = kind::null) {
        json_value* const made = open_.empty() ? &document_ : &open_.back()->elements_.emplace_back();
        made->kind_ = is;
        return made;
    }
    [[nodiscard]] bool open(kind is) {
        if (open_.size() == json_value::depth_max) return false;
        open_.push_back(next(is));
        return true;
    }
    [[nodiscard]] bool close() noexcept {
        open_.pop_back();
        return true;
    }

    json_value& document_;
    std::vector<json_value*> open_;  // unfinished objects and arrays, outermost first
};

std::optional<json_value> json_value::parse(std::string_view text) {
    json_value document;
    json_reader builder(document);
    if (not nlohmann::json::sax_parse(text, &builder)) return std::nullopt;
    return document;
}

const json_value& json_value::operator[](std::string_view name) const noexcept {
    static const json_value nothing;
    const auto found = std::ranges::find(names_, name);
    return found == names_.end() ? nothing : elements_[static_cast<std::size_t>(found - names_.begin())];
}

}  // namespace sluice::cli
