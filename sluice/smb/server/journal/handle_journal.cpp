#include "sluice/smb/server/journal/handle_journal.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sluice/base/held_mutexes.hpp"
#include "sluice/smb/server/journal/crc32c.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_version.hpp"

namespace sluice::smb::server {

namespace {

namespace format = journal_format;

constexpr std::size_t checked_header_bytes = offsetof(format::header, checksum);
constexpr std::size_t checked_copy_header_bytes = offsetof(format::copy_header, checksum);

std::uint64_t length_with(std::uint32_t slots) noexcept {
    return format::header_bytes + std::uint64_t{slots} * format::slot_bytes;
}

std::uint32_t checksum_of(const format::header& header) noexcept {
    return crc32c(*bytes_of(header).first(checked_header_bytes));
}

std::uint32_t checksum_of(const format::copy_header& header, bytes_view content) noexcept {
    return crc32c(content, crc32c(*bytes_of(header).first(checked_copy_header_bytes)));
}

/// Returns the copy that a generation of a slot is in. The slot exists (ENSURE).
mutable_bytes copy_at(mutable_bytes journal, std::uint32_t index, std::uint64_t generation) noexcept {
    const auto copy = journal.slice(
        {.offset = length_with(index) + generation % 2 * format::copy_bytes, .length = format::copy_bytes});
    ENSURE(copy.has_value(), "the storage has every slot that is in use");
    return *copy;
}

/// A copy that was written completely.
struct valid_copy {
    std::uint64_t generation = 0;
    bytes_view content{};
};

/// Returns the copy that begins a `journal` of one slot's copies, if it is valid.
std::optional<valid_copy> examine_copy(bytes_view copy, std::uint64_t parity) noexcept {
    const auto header = copy.take<format::copy_header>();
    ENSURE(header.has_value() and parity < 2);
    const std::uint64_t generation = header->generation.value();
    if (generation == 0 or generation > format::found_generation_max or generation % 2 != parity) return {};
    const auto content =
        copy.slice({.offset = sizeof(format::copy_header), .length = header->length.value()});
    if (not content or header->checksum.value() != checksum_of(*header, *content)) return {};
    return valid_copy{.generation = generation, .content = *content};
}

/// Returns the current copy of a slot; generation 0 if it has none.
valid_copy current_copy(mutable_bytes journal, std::uint32_t index) noexcept {
    valid_copy newest;
    for (const std::uint64_t parity : {0, 1}) {
        const mutable_bytes copy = copy_at(journal, index, parity);
        const auto seen = examine_copy({copy.data(), copy.size()}, parity);
        if (seen and seen->generation > newest.generation) newest = *seen;
    }
    return newest;
}

/// Returns the word of the journal at a multiple of its size, for stores that are not divided.
template <class Word>
std::atomic_ref<Word> word_at(mutable_bytes bytes, std::size_t offset) noexcept {
    const auto place = bytes.slice({.offset = offset, .length = sizeof(Word)});
    ENSURE(place.has_value() and reinterpret_cast<std::uintptr_t>(place->data()) % sizeof(Word) == 0);
    return std::atomic_ref<Word>(*reinterpret_cast<Word*>(place->data()));
}

std::uint32_t attempts_in(mutable_bytes journal) noexcept {
    const auto header = journal.take<format::header>();
    ENSURE(header.has_value(), "the storage of an open journal has a header");
    return header->attempts.value();
}

void store_attempts(mutable_bytes journal, std::uint32_t attempts) noexcept {
    // relaxed: only a later process reads it.
    word_at<std::uint32_t>(journal, offsetof(format::header, attempts))
        .store(std::bit_cast<std::uint32_t>(le32(attempts)), std::memory_order_relaxed);
}

}  // namespace

handle_journal::handle_journal(token, std::unique_ptr<journal_storage> storage,
                               const options& settings) noexcept
    : storage_(std::move(storage)),
      settings_{.slots_at_most = std::min(settings.slots_at_most, slots_max),
                .process_id = settings.process_id} {
    ENSURE(storage_ != nullptr and settings_.slots_at_most != 0);
}

result<std::shared_ptr<handle_journal>> handle_journal::open(std::unique_ptr<journal_storage> storage,
                                                             const journal_identity& identity,
                                                             const options& settings) {
    auto made = std::make_shared<handle_journal>(token(), std::move(storage), settings);
    if (const auto done = made->prepare(identity); not done) return failure(done.error());
    made->find_slots();
    return made;
}

std::uint32_t journal_version() noexcept {
    return format::version;
}

std::optional<std::uint32_t> later_version_in(bytes_view journal) noexcept {
    const auto header = journal.take<format::header>();
    // All versions have the header up to its checksum, so damage is not taken for a version.
    if (not header or header->magic != format::magic or header->checksum.value() != checksum_of(*header))
        return std::nullopt;
    const std::uint32_t found = header->version.value();
    return found > format::version ? std::optional(found) : std::nullopt;
}

std::optional<std::uint32_t> later_version_in(const journal_storage& storage) noexcept {
    return later_version_in(bytes_view(storage.bytes()));
}

result<void> handle_journal::prepare(const journal_identity& identity) noexcept {
    if (later_version_in(*storage_))
        return failure(error::with_path(ENOTSUP, "read a handle journal of a later version", name()));
    origin_ = examine(identity);
    if (origin_ == journal_origin::continued and attempts_in(storage_->bytes()) >= attempts_max) {
        if (const auto copied = storage_->copy_aside(); not copied) copy_error_ = copied.error();
        origin_ = journal_origin::set_aside;
    }
    if (origin_ != journal_origin::continued) {
        if (const auto done = storage_->empty(); not done) return done;
        if (const auto done = write_header(identity); not done) return done;
    }
    word_at<std::uint32_t>(storage_->bytes(), offsetof(format::header, process_id))
        .store(std::bit_cast<std::uint32_t>(le32(settings_.process_id)), std::memory_order_relaxed);
    return {};
}

journal_origin handle_journal::examine(const journal_identity& identity) const noexcept {
    const mutable_bytes bytes = storage_->bytes();
    const auto header = bytes.take<format::header>();
    if (not header) return bytes.empty() ? journal_origin::fresh : journal_origin::unknown;
    // A process that ended between the first two steps of write_header() leaves zeros.
    if (header->magic == decltype(header->magic){}) return journal_origin::fresh;
    const bool is_known = header->magic == format::magic and header->version.value() == format::version and
                          header->slot_bytes.value() == format::slot_bytes and
                          header->checksum.value() == checksum_of(*header) and
                          bytes.size() >= format::header_bytes;
    if (not is_known) return journal_origin::unknown;
    if (header->boot != identity.boot) return journal_origin::other_boot;
    const journal_identity found{.boot = header->boot,
                                 .device = header->device.value(),
                                 .inode = header->inode.value(),
                                 .born = static_cast<std::int64_t>(header->born.value())};
    return found == identity ? journal_origin::continued : journal_origin::other_root;
}

result<void> handle_journal::write_header(const journal_identity& identity) noexcept {
    if (const auto done = storage_->extend(format::header_bytes); not done) return done;
    format::header header{.magic = format::magic,
                          .version = le32(format::version),
                          .slot_bytes = le32(format::slot_bytes),
                          .boot = identity.boot,
                          .device = le64(identity.device),
                          .inode = le64(identity.inode),
                          .born = le64(static_cast<std::uint64_t>(identity.born)),
                          .zero = {},
                          .checksum = {},
                          .attempts = {},
                          .process_id = {}};
    header.checksum = le32(checksum_of(header));
    byte_writer writer(storage_->bytes());
    writer.put(header);
    ENSURE(writer.finish().has_value());
    return {};
}

// Lists the slots of the storage in descending order, so that the first ones are used first.
void handle_journal::find_slots() {
    const mutable_bytes bytes = storage_->bytes();
    ENSURE(bytes.size() >= format::header_bytes);
    const std::uint64_t present = (bytes.size() - format::header_bytes) / format::slot_bytes;
    const lock_guard growing(growing_);
    const lock_guard held(mutex_);
    slots_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(present, slots_max));
    free_.reserve(slots_);
    for (std::uint32_t index = slots_; index-- != 0;) {
        const valid_copy current = current_copy(bytes, index);
        const place where{.index = index, .generation = current.generation};
        (current.content.empty() ? free_ : found_).push_back(where);
    }
    std::ranges::reverse(found_);
    in_use_.store(static_cast<std::uint32_t>(found_.size()), std::memory_order_relaxed);
}

std::vector<handle_journal::recovered_handle> handle_journal::take_recovered() {
    std::vector<recovered_handle> all;
    if (found_.empty()) return all;
    store_attempts(storage_->bytes(), attempts_in(storage_->bytes()) + 1);
    all.reserve(found_.size());
    for (const place& where : std::exchange(found_, {})) {
        const valid_copy current = current_copy(storage_->bytes(), where.index);
        ENSURE(current.generation == where.generation, "a slot changes after its record was taken");
        recovered_handle made{.in = this,
                              .slot = slot(shared_from_this(), where, true),
                              .record = {},
                              .content = {current.content.begin(), current.content.end()},
                              .locks = {}};
        const auto record = decode_handle_record(made.content, made.locks);
        if (not record) {
            ++dropped_;
            made.slot.clear();
            continue;
        }
        made.record = *record;
        all.push_back(std::move(made));
    }
    return all;
}

void handle_journal::begin_service() noexcept {
    phase expected = phase::restoring;
    // relaxed: the threads that end slots have been started, or called, by the caller.
    if (phase_.compare_exchange_strong(expected, phase::serving, std::memory_order_relaxed))
        store_attempts(storage_->bytes(), 0);
}

void handle_journal::freeze() noexcept {
    phase_.store(phase::frozen, std::memory_order_relaxed);
}

bool handle_journal::is_frozen() const noexcept {
    return phase_.load(std::memory_order_relaxed) == phase::frozen;
}

void handle_journal::freeze_before(std::uint32_t number) noexcept {
    ENSURE(number != 0, "the number of a change counts from 1");
    until_frozen_.store(number, std::memory_order_relaxed);
}

// Returns whether the next change is made.
bool handle_journal::may_write() noexcept {
    if (until_frozen_.load(std::memory_order_relaxed) != 0 and
        until_frozen_.fetch_sub(1, std::memory_order_relaxed) == 1)
        freeze();
    return not is_frozen();
}

std::optional<handle_journal::slot> handle_journal::reserve() noexcept {
    held_mutexes::ensure_none();
    std::optional<place> where = take_free();
    while (not where and grow())
        where = take_free();
    if (not where) return std::nullopt;
    in_use_.fetch_add(1, std::memory_order_relaxed);
    return slot(shared_from_this(), *where, false);
}

std::optional<handle_journal::place> handle_journal::take_free() noexcept {
    const lock_guard held(mutex_);
    if (free_.empty()) return std::nullopt;
    const place where = free_.back();
    ENSURE(where.index < slots_max);
    free_.pop_back();
    return where;
}

void handle_journal::put_free(const place& returned) noexcept {
    const std::uint32_t before = in_use_.fetch_sub(1, std::memory_order_relaxed);
    ENSURE(before != 0, "a slot that is returned was in use");
    const lock_guard held(mutex_);
    ENSURE(free_.size() < free_.capacity(), "the list has room for all slots");
    free_.push_back(returned);
}

// Returns whether there may be free slots now.
bool handle_journal::grow() noexcept {
    const lock_guard growing(growing_);
    {
        const lock_guard held(mutex_);
        if (not free_.empty()) return true;  // another thread was first
    }
    if (slots_ >= settings_.slots_at_most or is_frozen()) return false;
    const std::uint32_t wanted = std::min(slots_ + format::slots_per_step, settings_.slots_at_most);
    // Without a mutex that others need. The bytes have memory now, so a store cannot fail.
    if (not storage_->extend(length_with(wanted))) return false;
    const mutable_bytes bytes = storage_->bytes();
    ENSURE(bytes.size() >= length_with(wanted));
    const lock_guard held(mutex_);
    free_.reserve(wanted);
    for (std::uint32_t index = wanted; index-- != slots_;)
        free_.push_back({.index = index, .generation = current_copy(bytes, index).generation});
    slots_ = wanted;
    return true;
}

// Writes a record, or that there is none, as the generation `to` of a slot. Until its last store,
// the other copy is current. A process is killed between two instructions, and all stores of those
// before are in the shared memory; so the compiler alone must keep the order.
void handle_journal::write(const place& to, const handle_record* record) noexcept {
    const mutable_bytes copy = copy_at(storage_->bytes(), to.index, to.generation);
    const auto room = copy.from(sizeof(format::copy_header));
    ENSURE(room.has_value() and to.generation <= format::generation_max);
    byte_writer writer(*room);
    if (record != nullptr) encode(writer, *record);
    const auto content = writer.finish();
    ENSURE(content.has_value(), "the bounds of a record are those of a copy");
    format::copy_header header{.generation = le64(to.generation),
                               .length = le32(static_cast<std::uint32_t>(content->size())),
                               .checksum = {}};
    header.checksum = le32(checksum_of(header, {content->data(), content->size()}));
    constexpr std::size_t rest = offsetof(format::copy_header, length);
    std::memcpy(copy.data() + rest, reinterpret_cast<const std::byte*>(&header) + rest, sizeof header - rest);
    // release: pairs with nothing in this process; it comes after the stores above.
    word_at<std::uint64_t>(copy, 0).store(std::bit_cast<std::uint64_t>(header.generation),
                                          std::memory_order_release);
    // The next store, into the other copy, must not begin before.
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

handle_journal::slot& handle_journal::slot::operator=(slot&& other) noexcept {
    if (this == &other) return *this;
    end();
    journal_ = std::move(other.journal_);
    place_ = other.place_;
    has_record_ = other.has_record_;
    return *this;
}

bool handle_journal::slot::store(const handle_record& record) noexcept {
    if (not record.fits()) return false;
    write(&record);
    return true;
}

void handle_journal::slot::clear() noexcept {
    if (has_record_) write(nullptr);
    ENSURE(journal_ != nullptr, "a slot that was moved has no record");
}

void handle_journal::slot::write(const handle_record* record) noexcept {
    ENSURE(journal_ != nullptr, "a slot that was moved has no record");
    if (not journal_->may_write()) return;
    ++place_.generation;
    journal_->write(place_, record);
    has_record_ = record != nullptr;
}

void handle_journal::slot::end() noexcept {
    if (journal_ == nullptr) return;
    const std::shared_ptr<handle_journal> journal = std::move(journal_);
    const phase now = journal->phase_.load(std::memory_order_relaxed);
    if (now == phase::frozen or (now == phase::restoring and has_record_)) return;
    if (has_record_) {
        if (not journal->may_write()) return;
        ++place_.generation;
        journal->write(place_, nullptr);
    }
    journal->put_free(place_);
}

}  // namespace sluice::smb::server
