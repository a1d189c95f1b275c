#include "sluice/smb/server/operation/past_files.hpp"

#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"

namespace sluice::smb::server {

using wire::create_disposition;
using wire::nt_status;

namespace {

// The first component that is a time.
struct named_time {
    std::size_t at = 0;
    vfs::snapshot_time when{};
};

[[nodiscard]] std::optional<named_time> find_time(std::string_view path) noexcept {
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        if (const auto when = wire::parse_gmt_token(path.substr(at, end - at)))
            return named_time{.at = at, .when = *when};
        at = end + 1;
    }
    return std::nullopt;
}

void remove_component(std::pmr::string& path, std::size_t at) noexcept {
    ENSURE(at + wire::gmt_token_units <= path.size(), "the component is in the path");
    const bool is_last = at + wire::gmt_token_units == path.size();
    path.erase(at, wire::gmt_token_units + (is_last ? 0 : 1));
    if (is_last and path.ends_with('/')) path.pop_back();
}

using opened_volume = std::expected<std::shared_ptr<vfs::volume>, nt_status>;

// The files of the tree in another volume, with the same rights.
[[nodiscard]] std::shared_ptr<tree> tree_in(const tree& present, std::shared_ptr<vfs::volume> volume,
                                            vfs::snapshot_time when, quota_hold&& counted) {
    ENSURE(not present.past_time and volume != nullptr, "a tree of the past is one of a connection's tree");
    share_configuration rules = present.target->configuration();
    rules.volume = std::move(volume);
    rules.snapshots.reset();
    auto fresh = std::make_shared<tree>();
    fresh->id = present.id;
    fresh->target = std::make_shared<share>(std::move(rules), present.target);
    fresh->access_max = present.access_max;
    fresh->audits = present.audits;
    fresh->requires_encryption = present.requires_encryption;
    fresh->counted = std::move(counted);
    fresh->past_time = when;
    if (present.impersonated != nullptr)
        fresh->impersonated = present.impersonated->same_account_on(fresh->target->volume());
    return fresh;
}

}  // namespace

bool names_snapshot(std::string_view path) noexcept {
    return find_time(path).has_value();
}

std::expected<std::optional<vfs::snapshot_time>, nt_status> asked_time(
    const share& of, const wire::create_request_contexts& contexts, file_name& name) {
    const std::unexpected none(nt_status::object_name_not_found);
    const bool has_snapshots = of.configuration().snapshots != nullptr;
    std::optional<vfs::snapshot_time> asked;
    if (contexts.timewarp) {
        const wire::tick_time exact = wire::tick_time_of(*contexts.timewarp);
        asked = std::chrono::floor<std::chrono::seconds>(exact);
        if (not has_snapshots or *asked != exact) return none;
    }
    if (not has_snapshots) return asked;
    const auto named = find_time(name.path);
    if (not named) return asked;
    remove_component(name.path, named->at);
    if (names_snapshot(name.path) or asked.value_or(named->when) != named->when) return none;
    return named->when;
}

io::task<nt_status> enter_past(request& r, vfs::snapshot_time when) {
    tree& present = *r.tree;
    const std::shared_ptr<vfs::snapshots> source = present.target->configuration().snapshots;
    if (source == nullptr) co_return nt_status::object_name_not_found;
    r.past = present.past.find(when);
    if (r.past != nullptr) co_return nt_status::success;
    quota_hold counted = r.host().quotas.take(r.session->admitted.client, limit::snapshots);
    if (counted.amount() == 0) co_return nt_status::insufficient_resources;
    const auto open = [&]() -> opened_volume {
        auto opened = source->open(when);
        if (not opened) return std::unexpected(status_of(opened.error()));
        return *std::move(opened);
    };
    auto opened = co_await r.call(source->domain(), open, vfs::waits_for_calls::yes);
    if (r.interrupted()) co_return *r.interrupted();
    if (not opened) co_return opened.error();
    std::vector<io::io_multiplexer*> loops;
    for (const auto& each : r.host().loops())
        loops.push_back(&each->multiplexer);
    (*opened)->serve_on(loops);
    r.past = present.past.keep(when, tree_in(present, *std::move(opened), when, std::move(counted)));
    ENSURE(r.past->past_time == when, "the tree is that of the time");
    co_return nt_status::success;
}

nt_status check_for_past(const wire::create_args& args) noexcept {
    const bool keeps_all =
        args.disposition == create_disposition::open or args.disposition == create_disposition::open_if;
    const bool deletes = wire::has(args.options, wire::create_options::delete_on_close);
    return keeps_all and not deletes ? nt_status::success : nt_status::media_write_protected;
}

}  // namespace sluice::smb::server
