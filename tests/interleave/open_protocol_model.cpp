#include "tests/interleave/open_protocol_model.hpp"

namespace sluice::interleave::names {

namespace {

constexpr unsigned rounds_max = 32;

}  // namespace

// The rights of a CREATE in one round, and the events it waits on.
struct world::round {
    explicit round(const create_request& wanted, const vfs::file_key& parent)
        : name(parent, wanted.name), pending(name) {}
    one_shot_event entered{loop()};
    one_shot_event woken{loop()};
    fifo_lock::lock_request barrier{entered};
    name_key name;
    pending_creates::place pending;
    bool has_directory_change = false;
    bool has_created = false;
    std::uint64_t removals = 0;
    inode_ptr node;
};

inode_ptr world::find(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? nullptr : found->second;
}

// Creates an inode with the smallest number that is not used by any name or request.
inode_ptr world::make_inode() {
    auto fresh = std::make_shared<inode>();
    const auto is_taken = [&](unsigned number) {
        return std::ranges::any_of(inodes_, [&](const std::weak_ptr<inode>& each) {
            const inode_ptr one = each.lock();
            return one != nullptr and one->number == number;
        });
    };
    fresh->number = 1;
    while (is_taken(fresh->number))
        ++fresh->number;
    inodes_.push_back(fresh);
    return fresh;
}

file_ptr world::find_file(unsigned number) {
    const auto found = files_.find(number);
    return found == files_.end() ? nullptr : found->second.lock();
}

file_ptr world::file_of(const inode_ptr& node) {
    if (file_ptr known = find_file(node->number)) return known;
    auto fresh = std::make_shared<file>();
    fresh->key = {.volume = 1, .file = node->number};
    files_[node->number] = fresh;
    return fresh;
}

void world::forget(const file& removed) {
    const auto number = static_cast<unsigned>(removed.key.file);
    if (find_file(number).get() == &removed) files_.erase(number);
}

void world::unlink(const inode_ptr& node) {
    for (auto each = names_.begin(); each != names_.end(); ++each) {
        if (each->second != node) continue;
        names_.erase(each);
        --node->links;
        if (std::ranges::any_of(opens_, [&](const open* one) { return one->node == node; }))
            fail("an open file is removed");
        return;
    }
}

void world::check_opens() {
    for (std::size_t i = 0; i != opens_.size(); ++i)
        for (std::size_t j = 0; j != i; ++j)
            if (opens_[i]->node == opens_[j]->node and
                not smb::server::can_coexist(opens_[i]->mode, opens_[j]->mode))
                fail("two opens of a file deny each other");
}

void world::commit(open& fresh) {
    fresh.at->protocol.commit(fresh.entry, fresh.mode);
    fresh.is_committed = true;
    opens_.push_back(&fresh);
    if (fresh.node->links == 0) fail("a removed file is opened");
    check_opens();
}

nt_status world::create(const create_request& wanted, open& fresh, const std::string& directory) {
    for (unsigned rounds = 0; rounds != rounds_max; ++rounds) {
        nt_status status = nt_status::success;
        if (attempt(wanted, fresh, directory, status) == outcome::done) return status;
    }
    fail("a CREATE does not end");
    return nt_status::sharing_violation;
}

world::outcome world::attempt(const create_request& wanted, open& fresh, const std::string& directory,
                              nt_status& status) {
    round of(wanted, directory_->key);
    if (not without_.barrier and not at_once([&] { return state_.rename_barrier().lock_shared(of.barrier); }))
        wait_for(of.entered);
    of.removals = at_once([&] { return state_.removals(); });
    bool has_parent = false;
    at_once([&] {
        has_parent = directory_exists_ and directory_name_ == directory;
        if (has_parent) of.node = find(wanted.name);
    });
    outcome next = outcome::done;
    if (not has_parent)
        status = nt_status::object_path_not_found;
    else if (of.node == nullptr and wanted.missing == when_missing::fail)
        status = nt_status::object_name_not_found;
    else if (of.node != nullptr and wanted.found == when_found::fail)
        status = nt_status::object_name_collision;
    else if (of.node == nullptr)
        next = make(wanted, of, status);
    else if (not without_.pending_creates) {
        pending_create_waiting blocked(state_.creates(), of.name, of.woken);
        const bool has_entry = at_once([&] {
            const file_ptr known = find_file(of.node->number);
            return known != nullptr and not known->protocol.entries().empty();
        });
        if (not has_entry and
            at_once([&] { return state_.creates().is_pending(of.name, blocked.place()); })) {
            at_once([&] { state_.rename_barrier().unlock(of.barrier); });
            wait_for(of.woken);
            return outcome::again;
        }
    }
    if (next == outcome::done and status == nt_status::success) next = join(wanted, fresh, of, status);
    end_creation(of);
    at_once([&] { state_.rename_barrier().unlock(of.barrier); });
    return next;
}

world::outcome world::make(const create_request& wanted, round& of, nt_status& status) {
    if (not without_.pending_creates) {
        pending_create_waiting blocked(state_.creates(), of.name, of.woken);
        if (not at_once([&] { return state_.creates().begin(of.pending, blocked.place()); })) {
            at_once([&] { state_.rename_barrier().unlock(of.barrier); });
            wait_for(of.woken);
            return outcome::again;
        }
    }
    if (not without_.directory_changes) {
        waiting<open_protocol> blocked(directory_->protocol, of.woken);
        const auto begun =
            at_once([&] { return directory_->protocol.begin_directory_change(blocked.place()); });
        if (begun == open_protocol::verdict::blocked) {
            end_creation(of);
            at_once([&] { state_.rename_barrier().unlock(of.barrier); });
            wait_for(of.woken);
            return outcome::again;
        }
        if (begun != open_protocol::verdict::granted) {
            status = nt_status::delete_pending;
            return outcome::done;
        }
        of.has_directory_change = true;
    }
    const bool is_made = at_once([&] {
        if (not directory_exists_) return false;
        if (directory_->protocol.phase() == delete_phase::delete_pending)
            fail("a file is created in a directory that is found empty and deleted");
        if (find(wanted.name) != nullptr) return false;
        of.node = names_[wanted.name] = make_inode();
        return true;
    });
    of.has_created = is_made;
    if (is_made) return outcome::done;
    return outcome::again;  // EEXIST, or the directory has been removed
}

world::outcome world::join(const create_request& wanted, open& fresh, round& of, nt_status& status) {
    fresh.node = of.node;
    fresh.mode = wanted.mode;
    fresh.deletes_on_close = wanted.deletes_on_close;
    fresh.at = at_once([&] { return file_of(of.node); });
    open_protocol& protocol = fresh.at->protocol;
    std::optional<waiting<open_protocol>> blocked(std::in_place, protocol, of.woken);
    const auto joined = at_once([&] { return protocol.join(fresh.entry, wanted.mode, blocked->place()); });
    if (of.has_created and joined != open_protocol::verdict::granted)
        fail("the creator of a file is refused");
    end_creation(of);
    switch (joined) {
        case open_protocol::verdict::granted:
            break;
        case open_protocol::verdict::blocked:
            at_once([&] { state_.rename_barrier().unlock(of.barrier); });
            wait_for(of.woken);
            return outcome::again;
        case open_protocol::verdict::gone:
            return outcome::again;
        case open_protocol::verdict::delete_pending:
            status = nt_status::delete_pending;
            return outcome::done;
        case open_protocol::verdict::sharing_violation:
            status = nt_status::sharing_violation;
            return outcome::done;
    }
    const bool has_removals = at_once([&] { return state_.removals() != of.removals; });
    if (has_removals and not without_.removal_count and at_once([&] { return of.node->links == 0; })) {
        const auto duty = at_once([&] { return protocol.leave(fresh.entry); });
        remove_if_last(fresh.at, fresh.node, duty);
        return outcome::again;
    }
    if (wanted.fails_late) {
        status = nt_status::insufficient_resources;
        const auto duty = at_once([&] {
            return of.has_created ? protocol.leave_created(fresh.entry) : protocol.leave(fresh.entry);
        });
        remove_if_last(fresh.at, fresh.node, duty);
        return outcome::done;
    }
    at_once([&] { commit(fresh); });
    return outcome::done;
}

void world::end_creation(round& of) {
    at_once([&] {
        state_.creates().end(of.pending);
        if (std::exchange(of.has_directory_change, false)) directory_->protocol.end_directory_change();
    });
}

nt_status world::close(open& ending) {
    const auto duty = at_once([&] {
        if (ending.deletes_on_close) ending.at->protocol.set_delete_pending();
        std::erase(opens_, &ending);
        ending.is_committed = false;
        return ending.at->protocol.leave(ending.entry);
    });
    remove_if_last(ending.at, ending.node, duty);
    return nt_status::success;
}

void world::remove_if_last(const file_ptr& at, const inode_ptr& node, open_protocol::removal_duty duty) {
    if (not duty.of_this) return;
    one_shot_event granted(loop());
    name_right removal(granted);
    if (not at_once([&] { return at->protocol.begin_removal(removal); })) wait_for(granted);
    const bool is_there = at_once([&] { return at->protocol.phase() == delete_phase::removing; });
    if (is_there) {
        at_once([&] { unlink(node); });
        at_once([&] { state_.count_removal(); });
    }
    at_once([&] {
        at->protocol.end_removal(removal, true);
        forget(*at);
    });
}

nt_status world::rename(open& source, const std::string& from, const std::string& to) {
    for (unsigned rounds = 0; rounds != rounds_max; ++rounds) {
        one_shot_event entered(loop());
        one_shot_event first_granted(loop());
        one_shot_event second_granted(loop());
        fifo_lock::lock_request barrier(entered);
        if (not at_once([&] { return state_.rename_barrier().lock_shared(barrier); })) wait_for(entered);
        pending_creates::place pending(name_key(directory_->key, to));
        if (not without_.pending_renames) {
            one_shot_event woken(loop());
            pending_create_waiting blocked(state_.creates(), pending.name(), woken);
            if (not at_once([&] { return state_.creates().begin(pending, blocked.place()); })) {
                at_once([&] { state_.rename_barrier().unlock(barrier); });
                wait_for(woken);
                continue;
            }
        }
        const inode_ptr target = at_once([&] { return find(to); });
        const file_ptr at_target = target == nullptr ? nullptr : at_once([&] { return file_of(target); });
        name_right first(first_granted);
        name_right second(second_granted);
        std::vector<std::pair<file_ptr, name_right*>> marks{{source.at, &first}};
        if (at_target != nullptr) marks.emplace_back(at_target, &second);
        std::ranges::sort(marks, {}, [](const auto& each) { return each.first->key; });
        if (not without_.marks)
            for (const auto& [at, right] : marks) {
                one_shot_event& granted = right == &first ? first_granted : second_granted;
                if (not at_once([&] { return at->protocol.mark(*right); })) wait_for(granted);
            }
        const bool is_target_open =
            at_target != nullptr and at_once([&] { return not at_target->protocol.entries().empty(); });
        bool is_done = false;
        if (not is_target_open) {
            is_done = at_once([&] {
                if (find(to) != target or find(from) != source.node) return false;
                if (target != nullptr) unlink(target);
                names_.erase(from);
                names_[to] = source.node;
                return true;
            });
            if (is_done and target != nullptr) at_once([&] { state_.count_removal(); });
        }
        at_once([&] {
            (void)source.at->protocol.unmark(first);
            if (at_target != nullptr and
                (without_.marks ? is_done : at_target->protocol.unmark(second, is_done)))
                forget(*at_target);
            state_.creates().end(pending);
        });
        at_once([&] { state_.rename_barrier().unlock(barrier); });
        if (is_target_open) return nt_status::access_denied;
        if (is_done) return nt_status::success;
    }
    fail("a RENAME does not end");
    return nt_status::sharing_violation;
}

nt_status world::rename_directory(const std::string& to) {
    one_shot_event entered(loop());
    fifo_lock::lock_request barrier(entered);
    if (not without_.barrier and not at_once([&] { return state_.rename_barrier().lock(barrier); }))
        wait_for(entered);
    std::vector<file_ptr> beneath;
    at_once([&] {
        for (const open* const one : opens_)
            beneath.push_back(one->at);
    });
    // The search. All files are below the directory. Files may be closed during the call.
    const bool is_open_beneath = at_once([&] {
        return std::ranges::any_of(beneath, [&](const file_ptr& each) {
            return std::ranges::any_of(opens_, [&](const open* one) { return one->at == each; });
        });
    });
    if (not is_open_beneath)
        at_once([&] {
            if (not opens_.empty()) fail("the path of an open file changes with its directory");
            directory_name_ = to;
        });
    at_once([&] { state_.rename_barrier().unlock(barrier); });
    return is_open_beneath ? nt_status::access_denied : nt_status::success;
}

nt_status world::delete_directory() {
    open_protocol& protocol = directory_->protocol;
    one_shot_event woken(loop());
    share_entry entry;
    at_once([&] {
        waiting<open_protocol> unused(protocol, woken);
        (void)protocol.join(entry, {}, unused.place());
        protocol.commit(entry, {});
    });
    smb::server::directory_check check;
    for (;;) {
        woken.reset();
        waiting<open_protocol> blocked(protocol, woken);
        if (at_once([&] { return protocol.begin_check(check, blocked.place()); }) !=
            open_protocol::verdict::blocked)
            break;
        wait_for(woken);
    }
    const bool is_empty = at_once([&] { return names_.empty(); });
    at_once([&] { protocol.end_check(check, is_empty); });
    const auto duty = at_once([&] { return protocol.leave(entry); });
    if (not duty.of_this) return nt_status::directory_not_empty;
    one_shot_event granted(loop());
    name_right removal(granted);
    if (not at_once([&] { return protocol.begin_removal(removal); })) wait_for(granted);
    at_once([&] { directory_exists_ = false; });
    at_once([&] {
        state_.count_removal();
        protocol.end_removal(removal, true);
    });
    return nt_status::success;
}

std::string world::verdict(const std::vector<open*>& left) {
    for (open* const one : left) {
        if (one->entry.is_inside()) (void)one->at->protocol.leave(one->entry);
        std::erase(opens_, one);
    }
    if (not opens_.empty()) return "an open is left";
    if (not problem_.empty()) return problem_;
    if (not directory_exists_ and not names_.empty()) return "a removed directory has a file";
    return "";
}

}  // namespace sluice::interleave::names
