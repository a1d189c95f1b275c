#include "sluice/smb/server/open/open.hpp"

#include <algorithm>

#include "sluice/io/file/page_cache.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

namespace {

// Whether no other open of the file was made through the same share.
[[nodiscard]] bool is_only_of_share(const file_section& held, const open& one) noexcept {
    return std::ranges::none_of(one.file->opens(held), [&](const open* other) {
        return other != &one and other->through == one.through;
    });
}

}  // namespace

open::open() noexcept = default;

open::~open() {
    ENSURE(has_ended() or file == nullptr, "an open is ended before it goes");
    ENSURE(in_file_.pending_writes == 0, "writes hold their open");
    ENSURE(not has_session(), "an open is taken from its session before it goes");
    drop_scan();
    if (node == nullptr) return;
    // Closing its descriptors may block. The share keeps the volume until then; the tree, which is
    // counted for its client, goes here.
    vfs::fs_domain& domain = node->domain();
    // The end of a watch calls the file system, too.
    if (in_file_.watch != nullptr)
        domain.discard(std::move(in_file_.watch), through, vfs::waits_for_calls::yes);
    if (in_file_.directory_watch != nullptr)
        domain.discard(std::move(in_file_.directory_watch), through, vfs::waits_for_calls::yes);
    domain.discard(std::move(node), std::move(through));
}

void open::enter_file(const file_section& held) {
    ENSURE(in_file(held).entry.is_inside(), "an open has joined before it is in the list of its file");
    file->add(held, *this);
    if (is_only_of_share(held, *this)) through->count_open_file();
}

void open::leave_file(const file_section& held) noexcept {
    ENSURE(in_file(held).entry.is_inside(), "an open leaves the list of its file before its entry goes");
    if (is_only_of_share(held, *this)) through->count_closed_file();
    file->remove(held, *this);
}

std::shared_ptr<session> open::session() const noexcept {
    const lock_guard held(mutex_);
    server::session* const of = session_.load(std::memory_order_relaxed);
    return of == nullptr ? nullptr : of->shared_from_this();
}

bool open::attach(server::session& to, std::shared_ptr<server::tree> by, const server::channel* on,
                  disconnect_state& lost) noexcept {
    std::shared_ptr<server::tree> before;  // released without the mutex
    const lock_guard held(mutex_);
    if (has_ended() or has_session()) return false;
    lost.counted = std::move(counted_kept_);
    if (durable_) lost.end = std::exchange(durable_->end, std::nullopt);
    ENSURE(not lost.end or is_persistent() or lost.counted.amount() == 1,
           "an open that is kept without its client is counted");
    ENSURE(phase() == open_phase::making or durable_, "an open without its client is durable");
    before = std::exchange(tree_, std::move(by));
    // release: pairs with the acquires in is_of().
    tree_seen_.store(tree_.get(), std::memory_order_release);
    session_.store(&to, std::memory_order_release);
    set_create_reply_channel(on);
    return true;
}

std::shared_ptr<session> open::detach() noexcept {
    const lock_guard held(mutex_);
    server::session* const of = session_.exchange(nullptr, std::memory_order_acq_rel);
    return of == nullptr ? nullptr : of->shared_from_this();
}

bool open::detach_from(const server::session& of) noexcept {
    const lock_guard held(mutex_);
    if (not is_of(of)) return false;
    ENSURE(has_ended(), "an open that is not kept leaves its session by its end");
    session_.store(nullptr, std::memory_order_release);
    return true;
}

std::optional<open_phase> open::end_if_of(const server::session* of) noexcept {
    const lock_guard held(mutex_);
    if (session_.load(std::memory_order_relaxed) != of) return std::nullopt;
    const open_phase before = end();
    return before == open_phase::ended ? std::nullopt : std::optional(before);
}

std::optional<durability> open::durable() const {
    const lock_guard held(mutex_);
    return durable_;
}

bool open::is_durable() const noexcept {
    const lock_guard held(mutex_);
    return durable_.has_value();
}

std::uint32_t open::next_disconnect() const noexcept {
    const lock_guard held(mutex_);
    return durable_ ? durable_->disconnects + 1 : 0;
}

bool open::begin_disconnect(const server::session& of, std::uint32_t number,
                            quota_hold&& counted_as_kept) noexcept {
    const lock_guard held(mutex_);
    const bool is_its_own = is_live() and session_.load(std::memory_order_relaxed) == &of;
    if (not is_its_own or not durable_ or durable_->disconnects + 1 != number) return false;
    ENSURE(not durable_->end, "the time of an open runs while its client is gone");
    ENSURE(is_persistent() or counted_as_kept.amount() == 1,
           "an open that is kept without its client is counted");
    durable_->disconnects = number;
    counted_kept_ = std::move(counted_as_kept);
    session_.store(nullptr, std::memory_order_release);
    return true;
}

bool open::make_persistent(const server::session& by, const durability& how) noexcept {
    ENSURE(how.is_persistent and create_guid, "a persistent open is found by its create guid");
    const lock_guard held(mutex_);
    if (not is_live() or session_.load(std::memory_order_relaxed) != &by or durable_) return false;
    durable_ = how;
    is_persistent_.store(true, std::memory_order_release);  // pairs with is_persistent()
    return true;
}

void open::begin_restored(const durability& how) noexcept {
    ENSURE(how.is_persistent and create_guid, "a persistent open is found by its create guid");
    const lock_guard held(mutex_);
    ENSURE(not has_session() and not durable_, "an open is restored without its client, once");
    durable_ = how;
    durable_->disconnects = 1;
    is_persistent_.store(true, std::memory_order_release);  // pairs with is_persistent()
    ENSURE(go_live(), "an open that is being restored has no other user");
}

bool open::is_disconnected(std::uint32_t number) const noexcept {
    const bool is_so = is_live() and not has_session() and durable_ and durable_->disconnects == number;
    ENSURE(not is_so or is_persistent() or counted_kept_.amount() == 1,
           "an open that is kept without its client is counted");
    return is_so;
}

bool open::set_disconnect_end(std::uint32_t number, const timer_queue::entry& end) noexcept {
    const lock_guard held(mutex_);
    if (not is_disconnected(number)) return false;
    ENSURE(not durable_->end, "a disconnect has one timer");
    durable_->end = end;
    return true;
}

bool open::end_if_disconnected(std::uint32_t number) noexcept {
    const lock_guard held(mutex_);
    return is_disconnected(number) and end() == open_phase::live;
}

open::disconnect_state open::take_disconnect_state() noexcept {
    ENSURE(has_ended(), "an open releases its timer and its count when it ends, or comes back");
    disconnect_state lost;
    const lock_guard held(mutex_);
    lost.counted = std::move(counted_kept_);
    if (durable_) lost.end = std::exchange(durable_->end, std::nullopt);
    ENSURE(not lost.end or is_persistent() or lost.counted.amount() == 1,
           "an open that is kept without its client is counted");
    return lost;
}

std::shared_ptr<directory_scan> open::scan(vfs::volume& volume) {
    ENSURE(is_directory(), "a directory is scanned");
    const lock_guard held(mutex_);
    if (has_ended()) return nullptr;
    if (scan_ == nullptr) scan_ = std::make_shared<directory_scan>(volume, *node);
    return scan_;
}

std::shared_ptr<io::file_handle> open::pages(const io::file_handle& of) {
    ENSURE(not is_pipe() and not is_directory(), "the data of a file are sent from it");
    const lock_guard held(mutex_);
    if (pages_ == nullptr)
        if (auto own = io::duplicate(of)) pages_ = std::make_shared<io::file_handle>(*std::move(own));
    return pages_;
}

void open::drop_scan() noexcept {
    std::shared_ptr<directory_scan> dropped;  // closed without the mutex
    const lock_guard held(mutex_);
    dropped = std::move(scan_);
}

}  // namespace sluice::smb::server
