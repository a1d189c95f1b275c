#include "sluice/smb/wire/nt_status.hpp"

#include <cstddef>
#include <iterator>

namespace sluice::smb::wire {
namespace {

struct named_status {
    nt_status status;
    std::string_view name;
};

constexpr named_status names[] = {
#define SLUICE_NAMED(enumerator, name, value) {nt_status::enumerator, "STATUS_" #name},
    SLUICE_NT_STATUS_LIST(SLUICE_NAMED)
#undef SLUICE_NAMED
};

consteval bool strictly_ascending() {
    for (std::size_t i = 1; i < std::size(names); ++i) {
        if (names[i - 1].status >= names[i].status) return false;
    }
    return true;
}
static_assert(strictly_ascending(), "a value twice in SLUICE_NT_STATUS_LIST, or out of order");

}  // namespace

std::string_view name_of(nt_status status) noexcept {
    for (const named_status& named : names) {
        if (named.status == status) return named.name;
    }
    return "STATUS_?";
}

}  // namespace sluice::smb::wire
