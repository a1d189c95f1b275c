#include "sluice/cli/serve/shared_locks.hpp"

#include <fmt/core.h>

#include <bit>

#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/process/offset_locks.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/fs_location.hpp"

namespace sluice::cli {

namespace {

using fsmutex::offset_locks;
using smb::server::peer_lock;
using smb::server::share_mode_lock_byte;
using smb::wire::bits_of;
using smb::wire::without;
using smb::wire::operator&;
using smb::wire::operator|=;

constexpr std::uint64_t first_lock_byte = smb::server::peer_byte_last + 1;
constexpr offset_locks::range all_lock_bytes{first_lock_byte,
                                             first_lock_byte + smb::server::share_mode_lock_byte_bits - 1};
static_assert(all_lock_bytes.last <= offset_locks::offset_max);

// Adjacent share-mode lock bytes, and their offsets.
struct lock_byte_run {
    share_mode_lock_byte bytes;
    offset_locks::range where;
};

// Returns the first run of a set that is not empty.
[[nodiscard]] lock_byte_run first_run(share_mode_lock_byte of) noexcept {
    const std::uint32_t bits = bits_of(of);
    const auto begin = static_cast<unsigned>(std::countr_zero(bits));
    const auto count = static_cast<unsigned>(std::countr_one(bits >> begin));
    const std::uint32_t run = ((1U << count) - 1U) << begin;
    return {static_cast<share_mode_lock_byte>(run),
            {first_lock_byte + begin, first_lock_byte + begin + count - 1}};
}

[[nodiscard]] offset_locks::state state_of(peer_lock lock) noexcept {
    switch (lock) {
        case peer_lock::free:
            return offset_locks::state::free;
        case peer_lock::shared:
            return offset_locks::state::shared;
        case peer_lock::exclusive:
            return offset_locks::state::exclusive;
    }
    return offset_locks::state::exclusive;
}

// Engines of disk images number their files in order of use, so the name includes the number of the
// engine.
[[nodiscard]] std::string name_of(const vfs::file_key& key) {
    const std::string name = fmt::format("{:x}-{:x}-{:x}", key.volume, key.file, key.stream);
    return key.image == 0 ? name : fmt::format("{:x}-{}", key.image, name);
}

}  // namespace

class shared_locks::shared_file final : public smb::server::peer_file {
public:
    shared_file(shared_locks& all, const vfs::file_key& key)
        : all_(all), name_(name_of(key)), entity_(fsmutex::entity::of_name(name_)) {}
    ~shared_file() override { lower(shown_); }

    [[nodiscard]] result<share_mode_lock_byte> raise(share_mode_lock_byte up,
                                                     share_mode_lock_byte unless) noexcept override {
        const auto entered = enter();
        if (not entered) return failure(entered.error());
        if (const auto opened = open_lock_bytes(io::creation::if_needed); not opened)
            return failure(opened.error());
        result<share_mode_lock_byte> conflicting = shown_by_others(unless);
        if (conflicting and *conflicting == share_mode_lock_byte::none) {
            const share_mode_lock_byte before = shown_;
            if (const auto done = show(without(up, before)); not done) {
                hide(without(shown_, before));
                conflicting = failure(done.error());
            }
        }
        if (shown_ == share_mode_lock_byte::none) leave_lock_bytes();
        return conflicting;
    }

    void lower(share_mode_lock_byte down) noexcept override {
        hide(down & shown_);
        // At the end of an exclusive claim, that does the rest.
        if (shown_ != share_mode_lock_byte::none or not lock_bytes_.is_open() or seal_) return;
        if (const auto entered = enter(); entered)
            leave_lock_bytes();
        else
            lock_bytes_ = {};
    }

    [[nodiscard]] result<void> claim_exclusively() noexcept override {
        auto entered = enter();
        if (not entered) return failure(entered.error());
        const auto opened = open_lock_bytes(io::creation::open_existing);
        if (not opened and opened.error() != std::errc::no_such_file_or_directory)
            return failure(opened.error());
        result<share_mode_lock_byte> conflicting = share_mode_lock_byte::none;
        if (opened) conflicting = shown_by_others(share_mode_lock_byte::has_open);
        if (conflicting and *conflicting == share_mode_lock_byte::none) {
            seal_ = *std::move(entered);
            return {};
        }
        if (shown_ == share_mode_lock_byte::none) leave_lock_bytes();
        if (not conflicting) return failure(conflicting.error());
        return failure(error::with_path(EBUSY, "claim a file exclusively", name_));
    }
    void end_exclusive_claim() noexcept override {
        if (shown_ == share_mode_lock_byte::none) leave_lock_bytes();
        seal_.unlock();
    }

    [[nodiscard]] bool lock(const sync::byte_range& where, peer_lock to) noexcept override {
        return lock_bytes_.set({where.first(), where.last()}, state_of(to)).value_or(false);
    }
    [[nodiscard]] bool is_lockable(const sync::byte_range& where, peer_lock to) noexcept override {
        return lock_bytes_.is_settable({where.first(), where.last()}, state_of(to)).value_or(false);
    }

private:
    [[nodiscard]] result<fsmutex::fs_mutex_guard> enter() noexcept {
        auto held = all_.entities_->try_lock(entity_);
        if (not held and held.error() == std::errc::timed_out)
            return failure(error::with_path(EAGAIN, "inspect a file of several servers", name_));
        return held;
    }

    // From here to leave_lock_bytes(), the caller holds the entity.
    [[nodiscard]] result<void> open_lock_bytes(io::creation how) noexcept {
        if (lock_bytes_.is_open()) return {};
        auto opened = offset_locks::open(all_.lock_byte_files_, name_, how);
        if (not opened) return failure(opened.error());
        lock_bytes_ = *std::move(opened);
        return {};
    }
    [[nodiscard]] result<share_mode_lock_byte> shown_by_others(share_mode_lock_byte of) const noexcept {
        while (of != share_mode_lock_byte::none) {
            const lock_byte_run run = first_run(of);
            const auto free = lock_bytes_.is_settable(run.where, offset_locks::state::exclusive);
            if (not free) return failure(free.error());
            if (not*free) return run.bytes;
            of = without(of, run.bytes);
        }
        return share_mode_lock_byte::none;
    }
    [[nodiscard]] result<void> show(share_mode_lock_byte up) noexcept {
        while (up != share_mode_lock_byte::none) {
            const lock_byte_run run = first_run(up);
            const auto done = lock_bytes_.set(run.where, offset_locks::state::shared);
            if (not done) return failure(done.error());
            if (not*done)
                return failure(
                    error::with_path(EIO, "lock a share-mode byte, which is only ever shared", name_));
            shown_ |= run.bytes;
            up = without(up, run.bytes);
        }
        return {};
    }
    void hide(share_mode_lock_byte down) noexcept {
        shown_ = without(shown_, down);
        while (down != share_mode_lock_byte::none) {
            const lock_byte_run run = first_run(down);
            (void)lock_bytes_.set(run.where, offset_locks::state::free);
            down = without(down, run.bytes);
        }
    }
    void leave_lock_bytes() noexcept {
        if (not lock_bytes_.is_open()) return;
        const auto is_alone = lock_bytes_.is_settable(all_lock_bytes, offset_locks::state::exclusive);
        if (is_alone and *is_alone) (void)io::remove(all_.lock_byte_files_, name_);
        lock_bytes_ = {};
    }

    shared_locks& all_;
    std::string name_;
    fsmutex::entity entity_;
    offset_locks lock_bytes_;
    share_mode_lock_byte shown_ = share_mode_lock_byte::none;
    fsmutex::fs_mutex_guard seal_;
};

result<std::unique_ptr<shared_locks>> shared_locks::open(const std::string& path) {
    auto entities = fsmutex::byte_ranges::open({}, path);
    if (not entities) return failure(entities.error());
    const std::string directory = path + ".d";
    const auto made = io::directory_handle::open({}, directory, io::mode::none, io::creation::if_needed);
    if (not made) return failure(made.error());
    auto lock_byte_files = io::path_handle::open(directory);
    if (not lock_byte_files) return failure(lock_byte_files.error());
    return std::unique_ptr<shared_locks>(new shared_locks(*std::move(entities), *std::move(lock_byte_files)));
}

std::unique_ptr<smb::server::peer_file> shared_locks::file(const vfs::file_key& key) {
    return std::make_unique<shared_file>(*this, key);
}

}  // namespace sluice::cli
