#include "sluice/fsmutex/queue/queue_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "sluice/fsmutex/process/descriptor_pool.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::fsmutex {
namespace {

using namespace queue_format;
using kernel_lock::kind;
using std::chrono::seconds;

constexpr unsigned torn_reads_max = 400;  // with pauses up to 5 ms, more than a second
constexpr unsigned append_attempts_max = 8;
constexpr std::uint64_t stale_opens_max = 200;  // with those pauses, more than a second

result<void> write_all(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
    while (not bytes.empty()) {
        const ssize_t written = io::checked_byte_count(
            ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset)), bytes.size());
        if (written < 0 and errno == EINTR) continue;
        if (written < 0) return failure(error::last("write a mutex file", descriptor));
        if (written == 0) return failure({ENOSPC, "write a mutex file", descriptor});
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
    return {};
}

// Reads at most `into.size()` bytes; at the end fewer.
result<bytes_view> read_all(int descriptor, std::span<std::byte> into, std::uint64_t offset) noexcept {
    std::size_t done = 0;
    while (done != into.size()) {
        const auto rest = into.subspan(done);
        const ssize_t got = io::checked_byte_count(
            ::pread(descriptor, rest.data(), rest.size(), static_cast<off_t>(offset + done)), rest.size());
        if (got < 0 and errno == EINTR) continue;
        if (got < 0) return failure(error::last("read a mutex file", descriptor));
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return bytes_view(into.data(), done);
}

result<struct stat> status_of(int descriptor) noexcept {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0)
        return failure(error::last("get the status of a mutex file", descriptor));
    return status;
}

result<std::uint64_t> size_of(int descriptor) noexcept {
    const auto status = status_of(descriptor);
    if (not status) return failure(status.error());
    return static_cast<std::uint64_t>(status->st_size);
}

// Returns whether other processes that open `path` get this file, until a process removes it. Over
// NFS, and through some FUSE file systems, a file that was removed while open has a link, under
// another name, until its remover has closed it. So there the name must be checked. Only creating
// it queries the server: for an open or a stat, the NFS client uses a directory cache that may be
// seconds old.
result<bool> is_named(const io::file_handle& file, io::volume_reach reach, const io::path_handle& base,
                      io::path_view path, const file_access& access) noexcept {
    const auto itself = status_of(file.descriptor());
    if (not itself) return failure(itself.error());
    if (itself->st_nlink == 0) return false;
    if (reach == io::volume_reach::this_host) return true;
    const auto made = create_lock_file(base, path, access);
    if (made) return false;  // the new file is empty, and for the next attempt: ours
    if (made.error() != std::errc::file_exists) return failure(made.error());
    const auto named = io::file_handle::open(base, path, io::mode::write);
    if (not named and named.error() == std::errc::no_such_file_or_directory) return false;
    if (not named) return failure(named.error());
    const auto there = status_of(named->descriptor());
    if (not there) return failure(there.error());
    return there->st_dev == itself->st_dev and there->st_ino == itself->st_ino;
}

// Called while the file is empty.
bool can_have_holes(int descriptor) noexcept {
    return ::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page_bytes) == 0 or
           errno != EOPNOTSUPP;
}

}  // namespace

queue_file::queue_file(io::file_handle opened, const dependencies& from) noexcept
    : file_(std::move(opened)), dependencies_(from) {}

result<std::unique_ptr<queue_file>> queue_file::open(const io::path_handle& base, io::path_view path,
                                                     const dependencies& from,
                                                     const file_access& access) noexcept {
    for (std::uint64_t stale = 0;;) {
        auto opened = open_once(base, path, from, access);
        // The server may no longer know a file that another host removed.
        const bool is_stale = not opened and opened.error().code() == ESTALE;
        if (is_stale and stale != stale_opens_max)
            backoff(stale).sleep(*from.clock, *from.random, clock_source::steady_time::max());
        else if (not opened or *opened != nullptr)
            return opened;
    }
}

// Returns null if the last user removed the file in between.
result<std::unique_ptr<queue_file>> queue_file::open_once(const io::path_handle& base, io::path_view path,
                                                          const dependencies& from,
                                                          const file_access& access) noexcept {
    auto file = open_lock_file(base, path, from, access);
    if (not file) return failure(file.error());
    const auto volume = io::volume_of(*file);
    if (not volume) return failure(volume.error());
    const int descriptor = file->descriptor();
    if (auto locked =
            kernel_lock::lock_for_opening(descriptor, queue_bytes::opening, *from.clock, *from.random);
        not locked)
        return failure(locked.error());
    const auto named = is_named(*file, volume->reach, base, path, access);
    if (not named) return failure(named.error());
    if (not*named) return std::unique_ptr<queue_file>();
    std::unique_ptr<queue_file> made(new (std::nothrow) queue_file(std::move(*file), from));
    if (made == nullptr) return failure({ENOMEM, "open a mutex"});
    const auto entered = made->enter_file(volume->reach);
    if (not entered) {
        (void)made->file_.close();  // this process must not remove the file
        return failure(entered.error());
    }
    // Another byte than the one in use: unlocking this one leaves the others locked.
    kernel_lock::unlock(descriptor, queue_bytes::opening);
    return made;
}

// Called while the byte for opening is locked.
result<void> queue_file::enter_file(io::volume_reach reach) noexcept {
    if (const int code = kernel_lock::try_lock(descriptor(), queue_bytes::in_use, kind::shared); code != 0)
        return failure({code, "lock a mutex file", descriptor()});
    const auto bytes = size_of(descriptor());
    if (not bytes) return failure(bytes.error());
    if (*bytes == 0)
        if (auto written = initialise_file(reach); not written) return failure(written.error());
    const auto now = read_header();
    if (not now) return failure(now.error());
    if (not*now)
        return failure({EBADMSG, "open a file that is not a mutex file of this version", descriptor()});
    created_s_ = (*now)->created_s;
    ring_bytes_ = (*now)->ring_pages * page_bytes;
    method_ = ring_bytes_ != 0 ? append_method::ring : append_method::atomic;
    auto seen = view_of(**now);
    if (not seen) return failure(seen.error());
    view_ = std::move(*seen);
    wakes_waiters_ = kernel_lock::wakes_waiters(reach);
    ends_waits_ = kernel_lock::is_interruptible(reach);
    return {};
}

result<void> queue_file::initialise_file(io::volume_reach reach) noexcept {
    // If another process has it open, it was truncated: it had a header, and perhaps slots of
    // holders.
    const auto is_used = kernel_lock::is_locked(descriptor(), queue_bytes::in_use, kind::exclusive);
    if (not is_used) return failure(is_used.error());
    if (*is_used)
        return failure({EBADMSG, "open a mutex file that was truncated while in use", descriptor()});
    return write_first_header(reach);
}

result<void> queue_file::write_first_header(io::volume_reach reach) noexcept {
    const auto since_1970 = dependencies_.clock->utc_now().time_since_epoch();
    const bool is_ring = reach != io::volume_reach::this_host or not can_have_holes(descriptor());
    std::array<std::byte, page_bytes> page;
    encode({.created_s = static_cast<std::uint64_t>(std::chrono::floor<seconds>(since_1970).count()),
            .ring_pages = is_ring ? ring_pages_usual : 0,
            .live_pages = {}},
           page);
    return write_all(descriptor(), page, 0);
}

queue_file::~queue_file() {
    if (not file_.is_valid()) return;
    // A process that opens it now waits for the first lock, and then finds that the file has no
    // name.
    if (kernel_lock::lock_for_opening(descriptor(), queue_bytes::opening, *dependencies_.clock,
                                      *dependencies_.random) and
        kernel_lock::try_lock(descriptor(), queue_bytes::in_use, kind::exclusive) == 0 and
        not has_live_slots())
        (void)io::unlink(file_);
    // A forked child may also have the descriptor: closing it would not unlock.
    kernel_lock::unlock(descriptor(), queue_bytes::everything);
}

std::uint64_t queue_file::age_us() const noexcept {
    using std::chrono::microseconds;
    const auto age = dependencies_.clock->utc_now().time_since_epoch() - seconds(created_s_);
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(std::chrono::floor<microseconds>(age).count(), 0));
}

std::uint64_t queue_file::offset_of(std::uint64_t place) const noexcept {
    return ring_bytes_ == 0 ? place : page_bytes + (place - page_bytes) % ring_bytes_;
}

result<std::uint64_t> queue_file::end() const noexcept {
    if (method_ == append_method::atomic) return size_of(descriptor());
    std::array<std::byte, sizeof(le64)> bytes;
    const auto got = read_all(descriptor(), bytes, ring_end_offset);
    if (not got) return failure(got.error());
    const auto end = got->take_at<le64>(0).value_or(le64(0)).value();
    if (end == 0) return page_bytes;
    if (end < page_bytes or end % slot_bytes != 0 or end >= queue_bytes::slots_end)
        return failure({EBADMSG, "find the end of a mutex file", descriptor()});
    return end;
}

result<bytes_view> queue_file::read(std::uint64_t place, std::span<std::byte> into) const noexcept {
    if (method_ == append_method::atomic) return read_all(descriptor(), into, place);
    for (std::size_t done = 0; done != into.size();) {
        const std::uint64_t offset = offset_of(place + done);
        const auto part = into.subspan(
            done, std::min<std::uint64_t>(into.size() - done, page_bytes + ring_bytes_ - offset));
        const auto got = read_all(descriptor(), part, offset);
        if (not got) return failure(got.error());
        std::ranges::fill(part.subspan(got->size()), std::byte{});  // not written yet
        done += part.size();
    }
    return bytes_view(into.data(), into.size());
}

slot queue_file::decode_at(std::uint64_t place, bytes_view bytes) const noexcept {
    const slot found = decode_slot(bytes);
    return method_ == append_method::ring and found.is_live() and found.place != place ? slot{} : found;
}

result<slot> queue_file::read_slot(std::uint64_t place) const noexcept {
    std::array<std::byte, slot_bytes> bytes;
    std::uint64_t rounds = 0;
    for (unsigned attempt = 0; attempt != torn_reads_max; ++attempt) {
        const auto got = read(place, bytes);
        if (not got) return failure(got.error());
        const slot found = decode_at(place, *got);
        if (found.kind != slot_kind::torn) return found;
        // The writer of a torn slot is done in an instant, unless it was preempted: then it needs a
        // turn.
        if (attempt == 0)
            ::sched_yield();
        else
            backoff(rounds).sleep(*dependencies_.clock, *dependencies_.random,
                                  clock_source::steady_time::max());
    }
    return failure({EBADMSG, "read a slot of a mutex file", descriptor()});
}

// --- the header

result<std::optional<header>> queue_file::read_header() const noexcept {
    std::array<std::byte, page_bytes> page;
    std::optional<header> found;
    // Torn while another process writes it: at most once or twice.
    for (int attempt = 0; not found and attempt != 8; ++attempt) {
        const auto got = read(0, page);
        if (not got) return failure(got.error());
        found = decode_header(*got);
    }
    return found;
}

void queue_file::record_dead_before(std::uint64_t place) noexcept {
    std::uint64_t before = seen_dead_before();
    while (before < place and
           not seen_dead_before_.compare_exchange_weak(before, place, std::memory_order_relaxed)) {}
}

std::shared_ptr<const queue_view> queue_file::view() noexcept {
    const std::lock_guard holding(mutex_);
    return view_;
}

result<std::shared_ptr<const queue_view>> queue_file::view_of(const header& now) noexcept {
    const auto before = view();
    try {
        const auto made = std::make_shared<queue_view>();
        made->generation = now.generation;
        made->first_known_good = now.first_known_good;
        for (const std::uint64_t place : now.live_pages) {
            std::shared_ptr<const queue_view::live_page> known;
            if (before != nullptr)
                for (const auto& each : before->live_pages)
                    if (each->place == place) known = each;
            if (known == nullptr) {
                const auto fresh = std::make_shared<queue_view::live_page>();
                fresh->place = place;
                if (const auto got = read(place, fresh->content); not got) return failure(got.error());
                known = fresh;
            }
            made->live_pages.push_back(std::move(known));
        }
        return made;
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "scan a mutex file"});
    }
}

result<std::shared_ptr<const queue_view>> queue_file::refreshed_view() noexcept {
    const auto before = view();
    const auto now = read_header();
    if (not now) return failure(now.error());
    // It stays torn only if the machine stopped while it was written; the previous view is still
    // valid.
    if (not*now or (*now)->generation <= before->generation) return before;
    auto fresh = view_of(**now);
    if (not fresh) return failure(fresh.error());
    const std::lock_guard holding(mutex_);
    if (view_->generation < (*fresh)->generation) view_ = *fresh;
    return view_;
}

// --- slots

result<std::uint64_t> queue_file::append(int lane, std::span<std::byte> slots) noexcept {
    return method_ == append_method::atomic ? append_atomically(lane, slots) : append_to_ring(lane, slots);
}

result<std::uint64_t> queue_file::append_atomically(int lane, std::span<const std::byte> slots) noexcept {
    // Positions only grow, so the next one is not before this, unless the file was truncated.
    const std::uint64_t place_min = std::max<std::uint64_t>(seen_dead_before(), page_bytes);
    for (unsigned attempt = 0; attempt != append_attempts_max; ++attempt) {
        const ssize_t written = ::write(lane, slots.data(), slots.size());
        if (written < 0 and errno == EINTR) continue;
        if (written < 0) return failure(error::last("append to a mutex file", lane));
        // The description belongs to this request alone, so its offset is still the end of the
        // append.
        const off_t end = ::lseek(lane, 0, SEEK_CUR);
        if (end < 0) return failure(error::last("append to a mutex file", lane));
        const std::uint64_t place = static_cast<std::uint64_t>(end - written);
        const bool is_whole = static_cast<std::size_t>(written) == slots.size();
        const bool is_cut = place < place_min;
        if (is_whole and place % slot_bytes == 0 and not is_cut) return place;
        // An incomplete append, as on a full disk, is invalid and is erased. So is a misaligned
        // append after the incomplete one of a process that died. Then the end is aligned to slots
        // again.
        static constexpr std::array<std::byte, slot_bytes> zeros{};
        for (std::uint64_t at = place; at < static_cast<std::uint64_t>(end); at += slot_bytes)
            (void)write_all(descriptor(),
                            std::span(zeros).first(
                                std::min<std::uint64_t>(slot_bytes, static_cast<std::uint64_t>(end) - at)),
                            at);
        const std::size_t askew = static_cast<std::uint64_t>(end) % slot_bytes;
        if (askew != 0) (void)!::write(lane, zeros.data(), slot_bytes - askew);
        if (is_cut) return failure({EBADMSG, "append to a truncated mutex file", lane});
        if (not is_whole) return failure({ENOSPC, "append to a mutex file", lane});
    }
    return failure({EBADMSG, "append to a mutex file", lane});
}

// --- a ring

int queue_file::lock_appending(int lane) const noexcept {
    const auto wait_or_try = wakes_waiters_ ? kernel_lock::lock : kernel_lock::try_lock;
    for (std::uint64_t rounds = 0;;) {
        const int code = wait_or_try(lane, queue_bytes::appending, kind::exclusive);
        if (code == EAGAIN)
            backoff(rounds).sleep(*dependencies_.clock, *dependencies_.random,
                                  clock_source::steady_time::max());
        else if (code != EINTR)
            return code;
    }
}

queue_file::append_pause::append_pause(const queue_file& file, int lane) noexcept
    : lane_(lane), is_needed_(file.method() == append_method::ring) {
    if (is_needed_) code_ = file.lock_appending(lane);
}

queue_file::append_pause::~append_pause() {
    if (is_needed_ and code_ == 0) kernel_lock::unlock(lane_, queue_bytes::appending);
}

result<std::uint64_t> queue_file::append_to_ring(int lane, std::span<std::byte> slots) noexcept {
    // In a file that hosts share, the lock has made the client query the server again.
    const append_pause mine(*this, lane);
    if (mine.error_code() != 0) return failure({mine.error_code(), "append to a mutex file", lane});
    const auto place = free_place(slots.size());
    if (not place) return failure(place.error());
    for (std::size_t at = 0; at != slots.size(); at += slot_bytes)
        set_place(slots.subspan(at).first<slot_bytes>(), *place + at);
    if (const auto written = write_behind(*place, slots); not written) return failure(written.error());
    return *place;
}

// Called while no other process appends, here and below.
result<void> queue_file::write_behind(std::uint64_t place, std::span<const std::byte> slots) noexcept {
    // First the end: no slot is ever after it, but one may be missing before it if its process died
    // in between.
    const le64 end(place + slots.size());
    if (const auto recorded = write_all(descriptor(), std::as_bytes(std::span(&end, 1)), ring_end_offset);
        not recorded)
        return recorded;
    const auto written = write_all(descriptor(), slots, offset_of(place));
    if (not written) erase(place, slots.size());
    return written;
}

// Returns the next position at or after the end with enough free space, at most one round later.
result<std::uint64_t> queue_file::free_place(std::size_t bytes) const noexcept {
    const auto first = end();
    if (not first) return failure(first.error());
    // In the first round the bytes have never been used.
    if (*first + bytes <= page_bytes + ring_bytes_) return *first;
    for (std::uint64_t place = *first; place < *first + ring_bytes_;) {
        const std::uint64_t before_the_turn = page_bytes + ring_bytes_ - offset_of(place);
        const auto used = before_the_turn < bytes ? before_the_turn : bytes_in_use(place, bytes);
        if (not used) return failure(used.error());
        if (*used == 0) return place;
        place += *used;
    }
    return failure({ENOSPC, "append to a mutex file", descriptor()});
}

// Returns the number of bytes from a position to the end of the last slot that is not free.
result<std::size_t> queue_file::bytes_in_use(std::uint64_t place, std::size_t bytes) const noexcept {
    std::size_t used = 0;
    std::array<std::byte, page_bytes> page;
    for (std::size_t at = 0; at < bytes; at += page_bytes) {
        const auto got = read(place + at, std::span(page).first(std::min(bytes - at, page_bytes)));
        if (not got) return failure(got.error());
        for (std::size_t i = 0; i < got->size(); i += slot_bytes)
            if (not is_zero(*got->slice({.offset = i, .length = slot_bytes}))) used = at + i + slot_bytes;
    }
    return used;
}

std::optional<std::uint64_t> queue_file::end_after_erasing(int lane) const noexcept {
    if (method_ != append_method::atomic) return std::nullopt;
    // Our earlier writes happen before this read; pairs with the fence in queue_scan::begin().
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const off_t end = ::lseek(lane, 0, SEEK_END);
    return end < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(end));
}

void queue_file::erase(std::uint64_t place, std::size_t bytes) noexcept {
    static constexpr std::array<std::byte, page_bytes> zeros{};
    // Pairs with the fence of slot_window::copy().
    std::atomic_thread_fence(std::memory_order_release);
    // From the end, page by page: if the process is killed in between, a head without its
    // continuation remains, which is found dead, and never a continuation without its head.
    for (std::uint64_t end = place + bytes; end > place;) {
        const std::uint64_t begin = std::max(place, (end - 1) / page_bytes * page_bytes);
        (void)write_all(descriptor(), std::span(zeros).first(end - begin), offset_of(begin));
        end = begin;
    }
}

void queue_file::rewrite(std::uint64_t place, const slot& with) noexcept {
    std::array<std::byte, slot_bytes> bytes;
    encode(with, bytes);
    (void)write_all(descriptor(), bytes, offset_of(place));
}

// --- tidying

// Returns whether all slots are dead, at most a page; unreadable ones count as alive.
bool queue_file::is_dead(std::uint64_t place, std::size_t bytes) const noexcept {
    std::array<std::byte, page_bytes> page;
    const auto got = read(place, std::span(page).first(bytes));
    if (not got or got->size() != bytes) return false;
    if (is_zero(*got)) return true;
    for (std::size_t at = 0; at < bytes; at += slot_bytes)
        if (decode_at(place + at, *got->from(at)).kind != slot_kind::free) return false;
    return true;
}

void queue_file::advance(header& now, std::uint64_t limit) const noexcept {
    while (now.first_known_good + page_bytes <= limit) {
        if (not is_dead(now.first_known_good, page_bytes)) {
            const bool is_old = limit - now.first_known_good > live_page_distance;
            if (not is_old or now.live_pages.size() == live_pages_max) break;
            now.live_pages.push_back(now.first_known_good);
        }
        now.first_known_good += page_bytes;
    }
}

void queue_file::drop_dead_live_pages(header& now) const noexcept {
    std::erase_if(now.live_pages, [&](std::uint64_t place) {
        const bool is_over = is_dead(place, page_bytes);
        if (is_over and place < now.first_after_hole_punch) punch_hole(place, place + page_bytes);
        return is_over;
    });
}

void queue_file::punch_hole(std::uint64_t from, std::uint64_t to) const noexcept {
    // The file can have holes; otherwise it would be a ring.
    (void)::fallocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                      static_cast<off_t>(to - from));
}

void queue_file::punch(header& now) const noexcept {
    if (now.first_known_good - now.first_after_hole_punch < punch_bytes) return;
    std::uint64_t from = now.first_after_hole_punch;
    for (const std::uint64_t page : now.live_pages) {
        if (page < from) continue;
        if (page > from) punch_hole(from, page);
        from = page + page_bytes;
    }
    if (now.first_known_good > from) punch_hole(from, now.first_known_good);
    now.first_after_hole_punch = now.first_known_good;
}

void queue_file::tidy(int lane, std::uint64_t limit, bool thorough) noexcept {
    if (kernel_lock::try_lock(lane, queue_bytes::tidying, kind::exclusive) != 0) return;
    // The header read under this lock is the newest: nothing goes backwards.
    const auto found = read_header();
    if (found and *found) {
        try {
            header now = **found;
            if (thorough) drop_dead_live_pages(now);
            advance(now, limit);
            punch(now);
            if (not(now == **found)) {
                ++now.generation;
                std::array<std::byte, page_bytes> page;
                const std::size_t used = encode(now, page);
                (void)write_all(descriptor(), std::span(page).first(used), 0);
            }
        } catch (const std::bad_alloc&) {
            // Another call will tidy the file.
        }
    }
    kernel_lock::unlock(lane, queue_bytes::tidying);
}

result<std::vector<slot>> queue_file::live_slots() noexcept {
    // A plain read returns the cache of a network file system's client; a lock makes it query the
    // server.
    if (const append_pause fresh(*this, descriptor()); fresh.error_code() != 0)
        return failure({fresh.error_code(), "scan a mutex file", descriptor()});
    const auto seen = refreshed_view();
    if (not seen) return failure(seen.error());
    const auto end = this->end();
    if (not end) return failure(end.error());
    try {
        std::vector<std::uint64_t> pages;
        for (const auto& page : (*seen)->live_pages)
            pages.push_back(page->place);
        for (std::uint64_t at = (*seen)->first_known_good; at < *end; at += page_bytes)
            pages.push_back(at);
        std::vector<slot> found;
        std::array<std::byte, page_bytes> page;
        for (const std::uint64_t place : pages) {
            const auto got = read(place, page);
            if (not got) return failure(got.error());
            for (std::size_t at = 0; at + slot_bytes <= got->size(); at += slot_bytes)
                if (const slot each = decode_at(place + at, *got->from(at)); each.is_live())
                    found.push_back(each);
        }
        return found;
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "scan a mutex file"});
    }
}

bool queue_file::has_live_slots() noexcept {
    const auto seen = refreshed_view();
    const auto end = this->end();
    if (not seen or not end) return true;
    for (const auto& page : (*seen)->live_pages)
        if (not is_dead(page->place, page_bytes)) return true;
    for (std::uint64_t at = (*seen)->first_known_good; at < *end; at += page_bytes)
        if (not is_dead(at, std::min<std::uint64_t>(page_bytes, *end - at))) return true;
    return false;
}

}  // namespace sluice::fsmutex
