#include "sluice/smb/wire/fscc/wildcard.hpp"

#include <array>
#include <bitset>
#include <optional>

#include "sluice/base/case_fold.hpp"

// The pattern is an automaton whose state is a set of places in the name: those that the elements
// read so far can reach. Each element maps the set to the next with a few operations on words, so
// there is no backtracking.

namespace sluice::smb::wire {
namespace {

// Place i is before character i; the last place is after all characters.
using places = std::bitset<name_characters_max + 1>;

char32_t as_compared(char32_t point, name_case letters) noexcept {
    return letters == name_case::ignored ? upcase(point) : point;
}

class name_places {
public:
    // Returns std::nullopt if the name is too long.
    template <class View>
    static std::optional<name_places> of(View name, name_case letters) noexcept {
        name_places made;
        for (std::size_t at = 0; at < name.size();) {
            if (made.size_ == name_characters_max) return std::nullopt;
            const name_character next = character_at(name, at);
            made.characters_[made.size_] = as_compared(next.point, letters);
            if (next.point == '.') {
                made.dots_.set(made.size_);
                made.last_dot_ = made.size_;
            }
            at += next.length;
            ++made.size_;
        }
        made.end_.set(made.size_);
        return made;
    }

    [[nodiscard]] bool end_in(const places& reached) const noexcept { return reached.test(size_); }

    [[nodiscard]] places after(char32_t element, const places& reached) const noexcept {
        switch (element) {
            case '*':
                return spread(reached, size_);
            case '<':
                return after_dos_star(reached);
            case '?':
                return (reached & ~end_) << 1;
            case '>':
                return (reached & (dots_ | end_)) | (reached & ~(dots_ | end_)) << 1;
            case '"':
                return (reached & end_) | (reached & dots_) << 1;
            default:
                return (reached & equal_to(element)) << 1;
        }
    }

private:
    // Returns `reached` and all places from the first one reached up to `last`.
    [[nodiscard]] places spread(places reached, std::size_t last) const noexcept {
        bool within = false;
        for (std::size_t i = 0; i <= last; ++i) {
            within = within or reached.test(i);
            if (within) reached.set(i);
        }
        return reached;
    }

    // Returns the places after a DOS star, which ends with the last dot if it begins before it.
    [[nodiscard]] places after_dos_star(const places& reached) const noexcept {
        if (!last_dot_) return spread(reached, size_);
        const places before = ~(~places() << (*last_dot_ + 1));
        return spread(reached & before, *last_dot_ + 1) | spread(reached & ~before, size_);
    }

    [[nodiscard]] places equal_to(char32_t element) const noexcept {
        places equal;
        for (std::size_t i = 0; i < size_; ++i)
            equal.set(i, characters_[i] == element);
        return equal;
    }

    std::array<char32_t, name_characters_max> characters_;  // the first size_ are valid
    std::size_t size_ = 0;
    std::optional<std::size_t> last_dot_;
    places dots_;
    places end_;
};

// [MS-FSA] 2.1.4.4 makes "*.*", which DOS programs use for all names, match names without a dot,
// too.
template <class View>
bool is_all_of_dos(View pattern) noexcept {
    return pattern.size() == 3 and pattern[0] == '*' and pattern[1] == '.' and pattern[2] == '*';
}

template <class View>
bool matches(View pattern, View name, name_case letters) noexcept {
    const std::optional<name_places> places_of_name = name_places::of(name, letters);
    if (!places_of_name) return false;
    if (is_all_of_dos(pattern)) return !name.empty();
    places reached(1);
    for (std::size_t at = 0; at < pattern.size() and reached.any();) {
        const name_character element = character_at(pattern, at);
        reached = places_of_name->after(as_compared(element.point, letters), reached);
        at += element.length;
    }
    return places_of_name->end_in(reached);
}

}  // namespace

bool wildcard_matches(std::string_view pattern, std::string_view name, name_case letters) noexcept {
    return matches(pattern, name, letters);
}

bool wildcard_matches(std::u16string_view pattern, std::u16string_view name, name_case letters) noexcept {
    return matches(pattern, name, letters);
}

bool has_wildcard(std::string_view pattern) noexcept {
    return pattern.find_first_of("*?<>\"") != std::string_view::npos;
}

}  // namespace sluice::smb::wire
