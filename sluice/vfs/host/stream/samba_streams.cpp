#include "sluice/vfs/host/stream/samba_streams.hpp"

#include <array>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/endian.hpp"

namespace sluice::vfs {
namespace {

constexpr std::string_view prefix = "user.DosStream.";
constexpr std::string_view type = ":$DATA";
constexpr unsigned extensions_max = 15;  // `max xattrs per stream` is at most 16

std::optional<std::string_view> without_type(std::string_view name) noexcept {
    if (name.size() >= type.size() and equal_ignoring_case(name.substr(name.size() - type.size()), type))
        name.remove_suffix(type.size());
    if (name.empty()) return std::nullopt;  // the file itself
    return name;
}

std::optional<unsigned> value_of_digit(char digit) noexcept {
    if (digit >= '0' and digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' and digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    if (digit >= 'A' and digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
    return std::nullopt;
}

struct depot_name {
    le64 device;
    le64 inode;
};
static_assert(sizeof(depot_name) == 16 and alignof(depot_name) == 1);

}  // namespace

std::optional<std::string_view> samba_stream_of_attribute(std::string_view attribute) noexcept {
    if (not attribute.starts_with(prefix)) return std::nullopt;
    return without_type(attribute.substr(prefix.size()));
}

std::optional<samba_stream_value> decode_samba_value(bytes_view value) noexcept {
    if (value.empty()) return std::nullopt;
    const auto extensions = std::to_integer<unsigned>(value[value.size() - 1]);
    if (extensions > extensions_max) return std::nullopt;
    return samba_stream_value{.content = *value.first(value.size() - 1), .extensions = extensions};
}

std::string samba_extension_of(std::string_view attribute, unsigned number,
                               std::string_view extension_prefix) {
    ENSURE(attribute.starts_with(prefix) and number != 0, "the first attribute of a stream is known");
    std::string name(extension_prefix);
    name += std::to_string(number);
    name += '.';
    name += attribute.substr(prefix.size());
    return name;
}

std::optional<samba_depot_file> decode_samba_depot_name(std::string_view name) noexcept {
    std::array<std::byte, sizeof(depot_name)> bytes{};
    if (name.size() != 2 * bytes.size()) return std::nullopt;
    for (std::size_t i = 0; i != name.size(); ++i) {
        const auto digit = value_of_digit(name[i]);
        if (not digit) return std::nullopt;
        bytes[i / 2] = bytes[i / 2] << 4 | std::byte(*digit);
    }
    const auto decoded = bytes_view(bytes).take<depot_name>();
    if (not decoded) return std::nullopt;
    return samba_depot_file{.device = decoded->device.value(), .inode = decoded->inode.value()};
}

std::optional<std::string_view> samba_stream_of_depot_file(std::string_view name) noexcept {
    if (not name.starts_with(':')) return std::nullopt;
    return without_type(name.substr(1));
}

}  // namespace sluice::vfs
