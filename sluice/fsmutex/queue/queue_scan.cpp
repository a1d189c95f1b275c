#include "sluice/fsmutex/queue/queue_scan.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace sluice::fsmutex {

using namespace queue_format;

namespace {

std::optional<queue_scan::blocking_slot> blocking_slot_of(const slot& found, std::uint64_t offset,
                                                          std::span<const entity> wanted) noexcept {
    if (not found.is_live() or not conflict(found.entities(), wanted)) return std::nullopt;
    bool was_exclusive = false;
    for (const entity each : found.entities())
        was_exclusive = was_exclusive or
                        (each.is_exclusive() and std::any_of(wanted.begin(), wanted.end(), [&](entity mine) {
                             return mine.number() == each.number();
                         }));
    return queue_scan::blocking_slot{.offset = offset, .id = found.id, .was_exclusive = was_exclusive};
}

}  // namespace

void queue_scan::begin(queue_file& file, std::uint64_t place) noexcept {
    // Our slot is visible before this read: see queue_file::end_after_erasing().
    std::atomic_thread_fence(std::memory_order_seq_cst);
    take_view(file, file.view());
    lowest_live_ = place;
    cursor_ = place;
    chunk_begin_ = place;
    is_refreshed_ = false;
    live_page_ = 0;
}

void queue_scan::begin_at_own(queue_file& file, std::uint64_t place) noexcept {
    begin(file, place);
    if (file.method() == queue_file::append_method::atomic) window_.open(file.descriptor(), place);
}

void queue_scan::take_view(queue_file& file, std::shared_ptr<const queue_view> fresh) noexcept {
    view_ = std::move(fresh);
    floor_ = std::max(view_->first_known_good, file.seen_dead_before());
}

void queue_scan::record_remains(const blocking_slot& found) noexcept {
    // Slots on live pages are listed there.
    if (found.offset >= floor_) lowest_live_ = std::min(lowest_live_, found.offset);
}

result<std::optional<queue_scan::blocking_slot>> queue_scan::next(queue_file& file,
                                                                  std::span<const entity> wanted) noexcept {
    auto found = next_near(file, wanted);
    if (not found or *found) return found;
    return next_live_page_slot(file, wanted);
}

result<void> queue_scan::read_chunk_before(const queue_file& file, std::uint64_t end) noexcept {
    const bool is_mapped = window_.covers(end - 1);
    const std::uint64_t first = is_mapped ? std::max(floor_, slot_window::page_of(end - 1)) : floor_;
    const std::size_t size = std::min<std::uint64_t>(chunk_bytes, end - first);
    chunk_begin_ = end - size;
    chunk_offset_ = chunk_begin_;
    chunk_read_ = size;
    const auto into = std::span(chunk_).first(size);
    if (is_mapped) {
        if (not window_.copy(chunk_begin_, into))
            return failure({EBADMSG, "scan a truncated mutex file", file.descriptor()});
        return {};
    }
    const auto got = file.read(chunk_begin_, into);
    if (not got) return failure(got.error());
    chunk_read_ = got->size();
    return {};
}

result<slot> queue_scan::slot_in_chunk(const queue_file& file, std::uint64_t offset) const noexcept {
    const auto bytes = bytes_view(chunk_.data(), chunk_read_)
                           .slice({.offset = offset - chunk_offset_, .length = slot_bytes});
    const slot seen = bytes ? file.decode_at(offset, *bytes) : slot{.kind = slot_kind::torn};
    return seen.kind == slot_kind::torn ? file.read_slot(offset) : seen;
}

result<std::optional<queue_scan::blocking_slot>> queue_scan::next_near(
    queue_file& file, std::span<const entity> wanted) noexcept {
    while (cursor_ > floor_) {
        if (chunk_begin_ == cursor_) {
            if (cursor_ - floor_ > chunk_bytes and not is_refreshed_) {
                auto fresh = file.refreshed_view();
                if (not fresh) return failure(fresh.error());
                take_view(file, std::move(*fresh));
                is_refreshed_ = true;
                continue;
            }
            if (const auto got = read_chunk_before(file, cursor_); not got) return failure(got.error());
        }
        while (cursor_ != chunk_begin_) {
            cursor_ -= slot_bytes;
            const auto seen = slot_in_chunk(file, cursor_);
            if (not seen) return failure(seen.error());
            if (seen->kind == slot_kind::free) continue;
            if (auto found = blocking_slot_of(*seen, cursor_, wanted)) {
                chunk_begin_ = cursor_;  // the rest has changed when it no longer conflicts
                return found;
            }
            lowest_live_ = cursor_;
        }
    }
    return std::nullopt;
}

std::optional<queue_scan::blocking_slot> queue_scan::neighbour(const blocking_slot& found,
                                                               std::span<const entity> wanted,
                                                               std::uint64_t processor) const noexcept {
    if (found.processor() == processor) return found;
    if (found.offset != cursor_) return std::nullopt;
    for (std::uint64_t at = cursor_; at != chunk_offset_;) {
        at -= slot_bytes;
        const auto bytes = bytes_view(chunk_.data(), chunk_read_)
                               .slice({.offset = at - chunk_offset_, .length = slot_bytes});
        if (not bytes) continue;
        const auto seen = blocking_slot_of(decode_slot(*bytes), at, wanted);
        if (seen and seen->processor() == processor) return seen;
    }
    return std::nullopt;
}

bool queue_scan::is_there(const queue_file& file, const blocking_slot& found) const noexcept {
    if (const auto word = window_.word_at(found.offset + offsetof(slot_record, id)))
        return std::bit_cast<le64>(*word).value() == found.id;
    std::array<std::byte, offsetof(slot_record, when_and_count)> bytes;
    const auto got = file.read(found.offset, bytes);
    const auto record_id = got ? got->take_at<le64>(offsetof(slot_record, id)) : std::nullopt;
    return record_id and record_id->value() == found.id;
}

result<std::optional<queue_scan::blocking_slot>> queue_scan::next_live_page_slot(
    queue_file& file, std::span<const entity> wanted) noexcept {
    for (; live_page_ != view_->live_pages.size() * slots_per_page; ++live_page_) {
        const auto& page = *view_->live_pages[live_page_ / slots_per_page];
        const std::uint64_t within = live_page_ % slots_per_page * slot_bytes;
        const auto bytes = bytes_view(page.content).slice({.offset = within, .length = slot_bytes});
        const slot known = file.decode_at(page.place + within, *bytes);
        // A free slot stays free. A slot that was live may be dead by now. A torn slot must be read
        // again.
        if (known.kind == slot_kind::free or (known.is_live() and not conflict(known.entities(), wanted)))
            continue;
        const auto now = file.read_slot(page.place + within);
        if (not now) return failure(now.error());
        if (auto found = blocking_slot_of(*now, page.place + within, wanted)) {
            ++live_page_;
            return found;
        }
    }
    return std::nullopt;
}

namespace {

// Returns `now` if it belongs to the request of `found`, otherwise a free slot.
slot same_or_free(const slot& now, const queue_scan::blocking_slot& found) noexcept {
    return now.is_live() and now.id == found.id ? now : slot{};
}

}  // namespace

result<slot> queue_scan::recheck(const queue_file& file, const blocking_slot& found) noexcept {
    const auto now = file.read_slot(found.offset);
    if (not now) return failure(now.error());
    return same_or_free(*now, found);
}

result<slot> queue_scan::recheck_and_scan_ahead(const queue_file& file, const blocking_slot& found) noexcept {
    // A live page has nothing to read ahead. (A page may have become a live page in the meantime.)
    if (found.offset != cursor_ or cursor_ < floor_) return recheck(file, found);
    if (const auto got = read_chunk_before(file, cursor_ + slot_bytes); not got) return failure(got.error());
    const auto now = slot_in_chunk(file, cursor_);
    if (not now) return failure(now.error());
    return same_or_free(*now, found);
}

}  // namespace sluice::fsmutex
