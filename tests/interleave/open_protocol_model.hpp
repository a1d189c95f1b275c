#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/file/naming_state.hpp"
#include "sluice/smb/server/file/open_protocol.hpp"
#include "tests/interleave/scheduler.hpp"

// CREATE, CLOSE and RENAME with the objects of docs/algorithms/open_protocol.md, and a model of one
// directory instead of a file system. Each call of an object or of the model is one step; a waiting
// request is a sleeping thread.

namespace sluice::interleave::names {

using smb::server::delete_phase;
using smb::server::fifo_lock;
using smb::server::name_key;
using smb::server::name_right;
using smb::server::naming_state;
using smb::server::open_protocol;
using smb::server::pending_create_waiting;
using smb::server::pending_creates;
using smb::server::share_entry;
using smb::server::sharing;
using smb::server::waiter;
using smb::server::waiting;
using smb::wire::nt_status;
using one_shot_event = smb::server::one_shot_event<nt_status>;

/// Parts of the protocol that a test omits, to verify that the exploration detects their absence.
struct omissions {
    bool pending_creates = false;
    bool pending_renames = false;
    bool removal_count = false;
    bool marks = false;
    bool directory_changes = false;
    bool barrier = false;
};

/// A file of the model. Its number is reused only when no name and no request refers to it.
struct inode {
    unsigned number = 0;
    int links = 1;
};
using inode_ptr = std::shared_ptr<inode>;

struct file {
    vfs::file_key key;
    open_protocol protocol;
};
using file_ptr = std::shared_ptr<file>;

struct open {
    inode_ptr node;
    file_ptr at;
    share_entry entry;
    sharing mode;
    bool deletes_on_close = false;
    bool is_committed = false;
};

enum class when_missing : unsigned char { fail, create };
enum class when_found : unsigned char { open, fail };

struct create_request {
    std::string name;
    sharing mode;
    when_missing missing = when_missing::fail;
    when_found found = when_found::open;
    bool deletes_on_close = false;
    bool fails_late = false;  // after it has joined the file
};

/// The directory, the file table, and the naming state of its domain. All names are in the
/// directory, whose own name is `directory_name`: a lookup under another name of it fails.
class world {
public:
    explicit world(omissions without) : without_(without), directory_(std::make_shared<file>()) {
        directory_->key = {.volume = 1, .file = 1000};
    }

    nt_status create(const create_request& wanted, open& fresh, const std::string& directory = "d");
    nt_status close(open& ending);
    /// Renames an open file to another name, which it replaces.
    nt_status rename(open& source, const std::string& from, const std::string& to);
    /// Renames the directory, if no file in it is open. As in operation/renaming.cpp, the barrier
    /// is held exclusively while the open files are collected, searched and checked.
    nt_status rename_directory(const std::string& to);
    /// Sets the delete disposition of the directory, and removes it: `by` is an open of it.
    nt_status delete_directory();

    /// Returns the first problem, or an empty string, after all requests have ended. `left`: the
    /// opens that may remain open.
    [[nodiscard]] std::string verdict(const std::vector<open*>& left);
    /// Returns whether the name exists.
    [[nodiscard]] bool has(const std::string& name) const { return names_.contains(name); }

private:
    struct round;
    enum class outcome : unsigned char { done, again };

    static io::io_multiplexer& loop() {
        static const std::unique_ptr<io::io_multiplexer> one = io::make_epoll_multiplexer().value();
        return *one;
    }
    // Performs `what` as one step.
    template <class What>
    auto at_once(What what) {
        step();
        record_change();
        if constexpr (std::is_void_v<decltype(what())>) {
            what();
            wake_set();
        } else {
            auto value = what();
            wake_set();
            return value;
        }
    }
    void wake_set() {
        for (one_shot_event* const one : sleeping_)
            if (one->is_set()) wake_all_on(one);
    }
    void wait_for(one_shot_event& what) {
        sleeping_.insert(&what);
        while (not what.is_set())
            sleep_on(&what, false);
        sleeping_.erase(&what);
    }
    void fail(const char* why) {
        if (problem_.empty()) problem_ = why;
    }

    [[nodiscard]] outcome attempt(const create_request& wanted, open& fresh, const std::string& directory,
                                  nt_status& status);
    [[nodiscard]] outcome make(const create_request& wanted, round& of, nt_status& status);
    [[nodiscard]] outcome join(const create_request& wanted, open& fresh, round& of, nt_status& status);
    void end_creation(round& of);
    void remove_if_last(const file_ptr& at, const inode_ptr& node, open_protocol::removal_duty duty);

    [[nodiscard]] inode_ptr find(const std::string& name) const;
    [[nodiscard]] inode_ptr make_inode();
    [[nodiscard]] file_ptr file_of(const inode_ptr& node);
    [[nodiscard]] file_ptr find_file(unsigned number);
    void forget(const file& removed);
    void unlink(const inode_ptr& node);
    void commit(open& fresh);
    void check_opens();

    omissions without_;
    std::string directory_name_ = "d";
    bool directory_exists_ = true;
    std::map<std::string, inode_ptr> names_;
    std::vector<std::weak_ptr<inode>> inodes_;
    std::map<unsigned, std::weak_ptr<file>> files_;
    file_ptr directory_;
    naming_state state_;
    std::set<one_shot_event*> sleeping_;
    std::vector<open*> opens_;
    std::string problem_;
};

}  // namespace sluice::interleave::names
