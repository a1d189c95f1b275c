#pragma once

#include <memory>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/vfs/domain/discardable.hpp"

namespace sluice::vfs {

class account_identity;
class node;

enum class change_kind : std::uint8_t {
    added,
    removed,
    modified,          ///< content or size
    attributes,        ///< times, attributes, owner, security, streams
    renamed_old_name,  ///< immediately followed by renamed_new_name if both names are watched
    renamed_new_name,
};

/// One change. `path` is relative to the watched directory and valid during the call only.
struct change {
    change_kind kind = change_kind::modified;
    bool is_directory = false;
    std::string_view path;
};

/// A listener for changes in a directory. The feed's task calls it, never watch(), with the
/// exception of may_watch(). The feed is locked during the call. A listener may use the feed, but
/// must not wait for another thread that uses it.
class change_listener {
public:
    virtual void changed(const change& what) noexcept = 0;
    /// Reports that some changes were lost. The listener must read the directory again.
    virtual void overflowed() noexcept = 0;
    /// Reports that the watched directory was removed, or that its watch has ended. No further
    /// calls follow.
    virtual void ended() noexcept = 0;
    /// Reports that the watched directory itself has another name or place. Volumes that cannot
    /// change behind the server need not report it.
    virtual void moved() noexcept {}
    /// Returns whether changes are irrelevant at the moment because some were already lost. The
    /// feed may then skip them, which saves time if a directory has many watches.
    [[nodiscard]] virtual bool needs_no_changes() const noexcept { return false; }
    /// Returns whether the watch may use that many watched directories, including the first. Called
    /// before the number grows, also from inside watch(), and after it shrinks, which is always
    /// allowed.
    [[nodiscard]] virtual bool may_watch(std::size_t) noexcept { return true; }

protected:
    ~change_listener() = default;
};

/// An active watch. Its destruction ends it, on any thread, and also from inside a listener's call.
/// Its listener is not called after that. Blocks: while the feed calls listeners.
class change_watch : public discardable {
protected:
    change_watch() = default;
};

/// Reports changes by any process, through the server or directly. Monitor. Thread safety: any
/// thread. co_changed() belongs to the volume's own loop, and deliver() follows it, on any thread.
/// watch(), deliver() and the end of a watch are calls of the volume's domain, which may wait for
/// each other (waits_for_calls::yes).
class change_feed {
public:
    virtual ~change_feed() = default;
    change_feed(const change_feed&) = delete;
    change_feed& operator=(const change_feed&) = delete;

    /// Watches a directory, and all directories below it if `recursive`. `listener` outlives the
    /// watch. Errors: ENOSPC if the system, the limits or the listener allow no more watches;
    /// ENOTDIR; EMFILE.
    [[nodiscard]] virtual result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                                      change_listener& listener) noexcept = 0;

    /// Returns whether a watch of the directory reports every change of its names, also by other
    /// hosts. By default true: nothing else changes the volume. Blocks: for the file system.
    [[nodiscard]] virtual bool reports_all_changes(node& /*directory*/) noexcept { return true; }

    /// Watches on behalf of an account of the host: the kernel checks its rights. A recursive watch
    /// skips directories that the account may not list, without an error. Feeds of volumes whose
    /// files do not belong to accounts of the host call watch().
    [[nodiscard]] virtual result<std::unique_ptr<change_watch>> watch_as(
        const std::shared_ptr<const account_identity>&, node& directory, bool recursive,
        change_listener& listener) noexcept {
        return watch(directory, recursive, listener);
    }

    /// Waits until there may be changes to deliver. Returns false if there will be no further
    /// changes, or if the scope is cancelled. One call at a time. Suspends.
    [[nodiscard]] virtual io::task<bool> co_changed() noexcept = 0;
    /// Delivers the changes to the listeners.
    virtual void deliver() noexcept = 0;

    /// Waits for changes and delivers them until its scope is cancelled. For single-threaded
    /// callers.
    [[nodiscard]] io::task<void> run() noexcept;

protected:
    change_feed() = default;
};

}  // namespace sluice::vfs
