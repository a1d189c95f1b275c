#include "sluice/fat/edit/recovered_file_names.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint32_t short_numbers = 10'000;
static_assert(recovered_file_names::count > limits::directory_slots_max);

std::optional<std::uint32_t> number_of(const short_name_bytes& bytes) {
    const std::string name(bytes.begin(), bytes.end());
    if (not name.starts_with("FSC") or not name.ends_with("REC")) return std::nullopt;
    const std::size_t front = name[3] == 'K' ? 4 : 3;
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(name.data() + front, name.data() + 8, number);
    if (parsed.ptr != name.data() + 8) return std::nullopt;
    return number;
}

}  // namespace

result<recovered_file_names> recovered_file_names::in(directory_slots& root) {
    recovered_file_names names;
    const auto done = root.find([&](std::uint64_t, const directory_entry& entry) {
        if (const auto number = number_of(entry.name)) {
            names.is_taken_[*number] = true;
            names.next_ = std::max(names.next_, (*number + 1) % count);
        }
        return false;
    });
    if (not done) return failure(done.error());
    return names;
}

short_name_bytes recovered_file_names::next() noexcept {
    ENSURE(next_ < count, "the number of a name that may be free");
    while (is_taken_[next_])
        next_ = (next_ + 1) % count;
    is_taken_[next_] = true;
    short_name_bytes name = {'F', 'S', 'C', 'K', '0', '0', '0', '0', 'R', 'E', 'C'};
    const std::size_t front = next_ < short_numbers ? 4 : 3;
    for (std::size_t i = 8, digits = next_; i != front; --i, digits /= 10)
        name[i - 1] = static_cast<unsigned char>('0' + digits % 10);
    return name;
}

}  // namespace sluice::fat
