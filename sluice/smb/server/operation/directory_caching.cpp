#include "sluice/smb/server/operation/directory_caching.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/vfs/node_children.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// A name that has changed, as the directory shows it now.
struct examined_name {
    cached_directories::event event;
    name_state now;
    bool is_known = false;
};

// Touches only the directory.
[[nodiscard]] std::vector<examined_name> examine(vfs::node& directory,
                                                 std::span<const cached_directories::event> events) {
    std::vector<examined_name> found;
    found.reserve(events.size());
    for (const cached_directories::event& each : events) {
        const auto now = directory.children()->identity_of(each.name);
        examined_name& one = found.emplace_back(examined_name{.event = each, .now = {}});
        one.is_known = now or now.error() == std::errc::no_such_file_or_directory;
        if (now) one.now = *now;
    }
    return found;
}

// A client that writes a file shows that to others when it closes the file.
[[nodiscard]] bool is_being_written(server_context& host, const name_state& of) noexcept {
    if (not of) return false;
    const std::shared_ptr<file_state> file = host.files.find(of->key);
    if (file == nullptr) return false;
    const file_section held(*file);
    return std::ranges::any_of(
        file->opens(held), [](const open* one) { return one->shows_end.load(std::memory_order_relaxed); });
}

[[nodiscard]] bool is_foreign(server_context& host, const vfs::file_key& directory,
                              const examined_name& one) {
    if (not one.is_known) return true;
    const bool is_written = is_being_written(host, one.now);
    if (one.event.is_content and is_written) return false;
    return not host.directories.is_own_change(directory, one.event, one.now, is_written);
}

// An open of the directory; null: all have ended, and its leases with them.
[[nodiscard]] std::shared_ptr<open> any_of(const std::vector<std::weak_ptr<open>>& opens) noexcept {
    for (const std::weak_ptr<open>& each : opens)
        if (std::shared_ptr<open> one = each.lock(); one != nullptr and one->is_live()) return one;
    return nullptr;
}

[[nodiscard]] bool is_cached(file_state& directory) noexcept {
    const file_section held(directory);
    return std::ranges::any_of(directory.opens(held), [&](const open* one) {
        const lease* const its = one->in_file(held).lease.get();
        return its != nullptr and its->held() != wire::lease_state::none;
    });
}

// The cache of a directory that a change leaves alone.
struct excepted_cache {
    std::optional<wire::lease_key> key;
    client_reference user;
};

[[nodiscard]] io::task<void> break_caches(server_context& host, std::shared_ptr<file_state> directory,
                                          excepted_cache except) noexcept {
    ENSURE(host.loop().is_owner(), "leases of directories are broken on the first loop");
    std::optional<cache_identity> left;
    if (except.key) left.emplace(cache_identity{.key = *except.key, .user = &except.user});
    decided_breaks breaks;
    {
        const file_section held(*directory);
        end_directory_caching(held, host, *directory, left, breaks);
    }
    (void)breaks.send(host);
    co_return;
}

// Names that one call examines; then the loop serves others.
constexpr std::size_t names_per_call = 64;

[[nodiscard]] io::task<bool> has_foreign_change(server_context& host, const open& through,
                                                const cached_directories::events& of) noexcept {
    vfs::fs_domain& domain = through.node->domain();
    for (std::size_t first = 0; first < of.names.size(); first += names_per_call) {
        if (first != 0) {
            io::task<bool> pausing = pass(host.loop(), deadline(std::chrono::milliseconds(1)));
            (void)co_await within_work(std::move(pausing));
        }
        const std::size_t count = std::min(names_per_call, of.names.size() - first);
        const std::span batch = std::span(of.names).subspan(first, count);
        const std::vector<examined_name> names =
            co_await within_work(domain.run(host.loop(), [&] { return examine(*through.node, batch); }));
        if (std::ranges::any_of(names, [&](const auto& one) { return is_foreign(host, of.directory, one); }))
            co_return true;
    }
    co_return false;
}

[[nodiscard]] io::task<void> examine_events_of(server_context& host,
                                               cached_directories::events events) noexcept {
    ENSURE(host.loop().is_owner(), "events are examined on the first loop");
    const std::shared_ptr<open> through = any_of(events.by);
    // Without a lease, there is nothing to break.
    bool are_own = through != nullptr and is_cached(*through->file) and not events.are_lost;
    if (are_own) {
        io::task<bool> examining = has_foreign_change(host, *through, events);
        are_own = not co_await std::move(examining);
    }
    if (not are_own) {
        // Some names were not examined, so that their states may be outdated.
        host.directories.forget_states(events.directory);
        break_directory_soon(host, events.directory, nullptr);
    }
    host.directories.end_examination(events.directory);
    if (host.directories.has_events()) examine_directories_soon(host);
}

[[nodiscard]] io::task<void> show_end(server_context& host, std::shared_ptr<open> ended) noexcept {
    own_change seen(host);
    vfs::fs_domain& domain = ended->node->domain();
    (void)co_await within_work(domain.run(host.background.loop(), [&] {
        seen.begin(*ended->node, true);
        seen.end(ended->node.get());
        return true;
    }));
    seen.break_leases(*ended);
}

}  // namespace

io::task<void> watch_for_lease(request& r, open& fresh, const wire::create_args& args) noexcept {
    if (not fresh.is_directory() or fresh.is_past() or not wants_directory_lease(r, args)) co_return;
    ENSURE(fresh.phase() == open_phase::making and fresh.file != nullptr,
           "a directory is watched before its open is committed");
    vfs::change_feed* const feed = r.files().volume().changes();
    if (feed == nullptr or r.host().peers() != nullptr) co_return;
    quota_hold counted = r.host().quotas.take(r.session->admitted.client, limit::cached_directories);
    if (counted.amount() == 0) co_return;
    using outcome = std::expected<std::unique_ptr<directory_watch>, nt_status>;
    const std::weak_ptr<open> by = fresh.weak_from_this();
    auto watch = co_await r.call(
        fresh.node->domain(),
        [&]() -> outcome {
            auto made =
                directory_watch::begin(r.host().directories, *feed, *fresh.node, by, std::move(counted));
            if (not made) return std::unexpected(nt_status::not_supported);
            return *std::move(made);
        },
        vfs::waits_for_calls::yes);
    if (not watch) co_return;
    const file_section held(*fresh.file);
    fresh.in_file(held).directory_watch = *std::move(watch);
}

void break_directory_soon(server_context& host, const vfs::file_key& directory, const open* by) noexcept {
    std::shared_ptr<file_state> file = host.files.find(directory);
    if (file == nullptr or not is_cached(*file)) return;
    excepted_cache except;
    if (by != nullptr and by->parent_key) {
        except.key = by->parent_key;
        except.user = by->counted.client();
    }
    host.background.spawn(break_caches(host, std::move(file), std::move(except)));
}

void examine_directories_soon(server_context& host) noexcept {
    for (cached_directories::events& each : host.directories.take_events())
        host.background.spawn(examine_events_of(host, std::move(each)));
}

void end_directory_watches(server_context& host, const vfs::volume& of) noexcept {
    ENSURE(host.loop().is_owner(), "feeds end on the first loop");
    if (not host.directories.has_any()) return;
    for (const std::shared_ptr<open>& one : host.opens.all()) {
        // Another thread may be about to make it; then it finds that the feed has ended.
        if (not one->is_live() or not one->is_directory() or one->file == nullptr or
            &one->through->volume() != &of)
            continue;
        vfs::file_key directory{};
        {
            const file_section held(*one->file);
            directory_watch* const watch = one->in_file(held).directory_watch.get();
            if (watch == nullptr) continue;
            watch->deactivate();
            directory = one->file->key(held);
        }
        break_directory_soon(host, directory, nullptr);
    }
}

void show_end_of_writes(server_context& host, const std::shared_ptr<open>& ended) noexcept {
    if (not ended->shows_end.exchange(false, std::memory_order_relaxed)) return;
    if (host.directories.has_any()) host.background.spawn(show_end(host, ended));
}

}  // namespace sluice::smb::server
