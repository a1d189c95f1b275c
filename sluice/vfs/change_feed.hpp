#pragma once

#include <memory>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/vfs/discardable.hpp"

namespace sluice::vfs {

class account_identity;
class node;

enum class change_kind : std::uint8_t {
    added,
    removed,
    modified,          ///< content or size
    attributes,        ///< times, attributes, owner, security
    renamed_old_name,  ///< directly followed by renamed_new_name if both names are watched
    renamed_new_name,
};

/// One change; `path` is relative to the watched directory and valid during the call only.
struct change {
    change_kind kind = change_kind::modified;
    bool is_directory = false;
    std::string_view path;
};

/// Is told what happens in a directory. Called from the feed's task, never from inside watch(), with the one
/// exception of may_watch(). The feed is locked during the call: a listener may use the feed itself, but must
/// not wait for another thread that does.
class change_listener {
public:
    virtual void changed(const change& what) noexcept = 0;
    /// Some changes were lost: look again at everything.
    virtual void overflowed() noexcept = 0;
    /// The watched directory itself has been removed, or its watch is at an end; nothing more comes.
    virtual void ended() noexcept = 0;
    /// Returns whether changes make no difference now: some were lost already. The feed may skip them then,
    /// which matters if a directory has many watches.
    [[nodiscard]] virtual bool needs_no_changes() const noexcept { return false; }
    /// Returns whether the watch may have that many directories watched one by one, the first included. Asked
    /// before there are more, also from inside watch(), and called when there are fewer, which is
    /// always allowed.
    [[nodiscard]] virtual bool may_watch(std::size_t) noexcept { return true; }

protected:
    ~change_listener() = default;
};

/// A watch that is kept; dropping it ends it, on any thread, and from inside a listener's call, too. Its
/// listener is not called any more once it is dropped. Blocks: while the feed tells listeners of something.
class change_watch : public discardable {
protected:
    change_watch() = default;
};

/// Tells of changes made by anybody, through the server or beside it.
/// Monitor. Thread safety: any thread; co_changed() belongs to the volume's own loop, and tell() follows it,
/// on any thread. watch(), tell() and the end of a watch are calls of the volume's domain, which
/// may wait for each other (waits_for_calls::yes).
class change_feed {
public:
    virtual ~change_feed() = default;
    change_feed(const change_feed&) = delete;
    change_feed& operator=(const change_feed&) = delete;

    /// Watches a directory, with all below it if `recursive`. `listener` outlives the watch.
    /// Errors: ENOSPC when no more watches are allowed, by the system, by limits or by the listener; ENOTDIR;
    /// EMFILE.
    [[nodiscard]] virtual result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                                      change_listener& listener) noexcept = 0;

    /// The same on behalf of an account of the host: the kernel checks its rights. A recursive watch skips
    /// directories that the account may not list, without an error. Feeds of volumes whose files do not
    /// belong to accounts of the host do as watch().
    [[nodiscard]] virtual result<std::unique_ptr<change_watch>> watch_as(
        const std::shared_ptr<const account_identity>&, node& directory, bool recursive,
        change_listener& listener) noexcept {
        return watch(directory, recursive, listener);
    }

    /// Waits until there may be something to tell. False: nothing will be any more, or the scope is
    /// cancelled. One at a time. Suspends.
    [[nodiscard]] virtual io::task<bool> co_changed() noexcept = 0;
    /// Tells the listeners what there is.
    virtual void tell() noexcept = 0;

    /// Waits for changes and tells the listeners, until its scope is cancelled. For who has one thread.
    [[nodiscard]] io::task<void> run() noexcept;

protected:
    change_feed() = default;
};

}  // namespace sluice::vfs
