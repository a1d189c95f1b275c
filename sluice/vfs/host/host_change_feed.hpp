#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/change_queue.hpp"
#include "sluice/vfs/host/host_tree.hpp"

// Internal to the host volume.

namespace sluice::vfs {

/// Reports changes in directories of the host, from one inotify queue.
///
/// The kernel watches single directories. A recursive watch consists of one watch on every
/// directory below, set when the watch begins and again for each directory that is created or moved
/// in. Files created in a new directory before its watch exists are searched for and reported as
/// added; such a file can be reported twice. The position of a directory is kept as a parent and a
/// name, so that a move includes the directories below. Symbolic links are not followed.
///
/// A watch searches directories with the rights of its account. It skips directories below the
/// watched one that the account may not list, and checks one again when its attributes change: the
/// kernel checks only when its own watch is set. The watched directory itself was opened for
/// listing, and remains watched.
///
/// If another program removes a directory, its watch ends only when the last process has closed the
/// directory: the kernel does not report the removal before.
///
/// Monitor. Thread safety: as change_feed; `events_`, and reading the kernel's queue, are
/// co_changed()'s and deliver()'s. A recursive watch looks through its directories with the mutex
/// held: deliver() waits for that, so it is a call of the domain, like the beginning and end of a
/// watch. co_changed() never takes the mutex, because a call that does not end may hold it: the
/// kernel's queue is open before. Invariants:
///   1. `places_` has every place, by the kernel's number; a number is watched as
///      long as it has a place.
///   2. A place's parent is a place of the same watch, and owns it; the first has none,
///   and its watch owns it.
class host_change_feed final : public change_feed {
public:
    /// Opens the kernel's queue. Where that fails, each watch fails with the same error.
    explicit host_change_feed(host_tree& tree) noexcept;
    ~host_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override {
        return watch_as(nullptr, directory, recursive, listener);
    }
    /// `account` may be null: then with the rights of the process.
    [[nodiscard]] bool reports_all_changes(node& directory) noexcept override;
    [[nodiscard]] result<std::unique_ptr<change_watch>> watch_as(const account_ptr& account, node& directory,
                                                                 bool recursive,
                                                                 change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void deliver() noexcept override;

private:
    class held_watch;
    struct place;
    struct kernel_event {
        int kernel_watch = -1;
        std::uint32_t mask = 0;
        std::uint32_t cookie = 0;
        std::string name{};
    };
    struct listing_right;
    enum class report_content : bool { no, yes };

    [[nodiscard]] result<place*> add_place(held_watch& owner, place* parent, const io::handle& directory,
                                           std::string_view name);
    [[nodiscard]] result<void> add_below(place& above, report_content reports);
    void release(place& which) noexcept;
    void forget(held_watch& which) noexcept;

    void take_events();
    void dispatch();
    void dispatch_rename(const kernel_event& from, const kernel_event& to);
    void queue_change(const place& where, change_kind what, bool is_directory, std::string_view name);
    void dispatch_single(const kernel_event& event);
    void dispatch_own_move(int kernel_watch);
    void appear(place& where, const std::string& name);
    void remove_child(place& where, std::string_view name) noexcept;
    void check_again(place& where, const std::string& name, std::vector<listing_right>& known);
    [[nodiscard]] const listing_right& right_of(const place& where, const std::string& name,
                                                std::vector<listing_right>& known);
    [[nodiscard]] std::optional<int> watch_of_listable(const place& where, const std::string& name);
    void end(int kernel_watch);
    void overflow();

    host_tree& tree_;
    io::pipe_handle kernel_queue_;  // its descriptor never changes
    result<void> opened_;           // whether it is open

    std::recursive_mutex mutex_;  // guards what follows; recursive because listeners use the feed
    std::unordered_multimap<int, place*> places_;
    std::vector<held_watch*> watches_;
    std::vector<kernel_event> events_;  // taken, not yet dispatched
    change_queue queue_;
};

}  // namespace sluice::vfs
