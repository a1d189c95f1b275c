#include "sluice/smb/wire/rpc/rpc_handles.hpp"

#include <algorithm>

namespace sluice::smb::wire {

std::optional<rpc_handle> rpc_handle_table::add(const guid& id, const rpc_object& opened) {
    if (entries_.size() == handles_max) return std::nullopt;
    entries_.push_back({.id = id, .object = opened});
    return rpc_handle{.attributes = {}, .id = id};
}

std::optional<rpc_object> rpc_handle_table::find(const rpc_handle& of) const noexcept {
    const auto found = std::ranges::find(entries_, of.id, &entry::id);
    if (found == entries_.end() or of.attributes.value() != 0) return std::nullopt;
    return found->object;
}

std::optional<rpc_object> rpc_handle_table::find(const rpc_handle& of,
                                                 rpc_object::kind wanted) const noexcept {
    const auto found = find(of);
    return found and found->is == wanted ? found : std::nullopt;
}

bool rpc_handle_table::remove(const rpc_handle& closed) noexcept {
    if (!find(closed)) return false;
    ENSURE(std::erase_if(entries_, [&](const entry& one) { return one.id == closed.id; }) == 1,
           "the ID of a handle is unique");
    return true;
}

}  // namespace sluice::smb::wire
