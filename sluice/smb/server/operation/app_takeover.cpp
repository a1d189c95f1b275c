#include "sluice/smb/server/operation/app_takeover.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"

namespace sluice::smb::server {

namespace {

// Reloading the configuration replaces a share object: what clients connect to is the name.
[[nodiscard]] bool is_same_share(const share& a, const share& b) noexcept {
    return equal_ignoring_case(a.configuration().name, b.configuration().name);
}

// Opens of the file, by the name of `node`, that belong to other instances.
[[nodiscard]] std::vector<std::shared_ptr<open>> others_of(const request& r, const app_instance& fresh,
                                                           const vfs::node& node) {
    std::vector<std::shared_ptr<open>> others;
    const std::shared_ptr<file_state> file = r.host().files.find(node.key());
    if (file == nullptr) return others;
    {
        const file_section held(*file);
        for (open* const one : file->opens(held)) {
            const bool is_other = one->is_live() and one->instance and one->instance->id == fresh.id and
                                  one->client != r.connection().agreed.client and
                                  is_same_share(*one->through, *r.tree->target);
            if (is_other) others.push_back(one->shared_from_this());
        }
    }
    std::erase_if(others,
                  [&](const auto& one) { return not equal_ignoring_case(one->node->path(), node.path()); });
    return others;
}

}  // namespace

bool is_newer(const app_instance& fresh, const app_instance& held) noexcept {
    return not held.version or (fresh.version and *fresh.version > *held.version);
}

std::optional<app_instance> app_instance_in(wire::dialect agreed,
                                            const wire::create_request_contexts& asked) noexcept {
    if (not asked.app_instance_id or agreed < wire::dialect::smb_3_0) return std::nullopt;
    app_instance named{.id = *asked.app_instance_id, .version = std::nullopt};
    if (agreed >= wire::dialect::smb_3_1_1) named.version = asked.app_instance_version;
    if (named.id == wire::guid{} and not named.version) return std::nullopt;
    return named;
}

std::optional<app_instance> app_instance_in(const request& r, const wire::create_request_contexts& asked) {
    const auto& agreed = r.connection().agreed.dialect;
    ENSURE(agreed.has_value(), "a client that opens files has negotiated");
    return app_instance_in(*agreed, asked);
}

take_over take_over_file(const request& r, const app_instance& fresh, const vfs::node& node) {
    ENSURE(r.tree != nullptr and r.tree->target->has_volume(), "a CREATE of a file takes over");
    const std::vector<std::shared_ptr<open>> others = others_of(r, fresh, node);
    if (others.empty()) return take_over::none;
    if (not std::ranges::all_of(others, [&](const auto& each) { return is_newer(fresh, *each->instance); }))
        return take_over::refused;
    for (const std::shared_ptr<open>& one : others) {
        ENSURE(one->client != r.connection().agreed.client, "a client does not take over its own opens");
        (void)end_open(r.host(), *one);
    }
    return take_over::ended;
}

}  // namespace sluice::smb::server
