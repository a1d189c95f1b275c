#include "sluice/vfs/memory/memory_content.hpp"

#include <algorithm>
#include <iterator>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

struct part {
    std::uint64_t page = 0;
    std::size_t offset = 0;
    std::size_t length = 0;
};

// Calls `visit(part, done)` for the part of [offset, offset+length) in each page, with the number
// of preceding bytes.
template <class Visit>
void for_each_part(std::uint64_t offset, std::uint64_t length, Visit visit) {
    for (std::uint64_t done = 0; done < length;) {
        const std::uint64_t at = offset + done;
        const auto within = static_cast<std::size_t>(at % memory_content::page_bytes);
        const auto bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(memory_content::page_bytes - within, length - done));
        visit(part{.page = at / memory_content::page_bytes, .offset = within, .length = bytes}, done);
        done += bytes;
    }
}

}  // namespace

std::size_t memory_content::read(std::span<std::byte> into, std::uint64_t offset) const noexcept {
    if (offset >= size_) return 0;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_ - offset));
    for_each_part(offset, count, [&](const part& where, std::uint64_t done) {
        const auto target = into.subspan(static_cast<std::size_t>(done), where.length);
        const auto found = pages_.find(where.page);
        if (found == pages_.end()) {
            std::ranges::fill(target, std::byte{});
        } else {
            std::ranges::copy(std::span(*found->second).subspan(where.offset, where.length), target.begin());
        }
    });
    return count;
}

bool memory_content::write(std::span<const std::byte> from, std::uint64_t offset) {
    ENSURE(offset <= INT64_MAX and from.size() <= INT64_MAX - offset);
    std::uint64_t missing = 0;
    for_each_part(offset, from.size(),
                  [&](const part& where, std::uint64_t) { missing += pages_.contains(where.page) ? 0 : 1; });
    if (missing > budget_.pages_left) return false;
    budget_.pages_left -= missing;
    for_each_part(offset, from.size(), [&](const part& where, std::uint64_t done) {
        auto& held = pages_[where.page];
        if (held == nullptr) held = std::make_unique<page>();
        std::ranges::copy(from.subspan(static_cast<std::size_t>(done), where.length),
                          held->begin() + static_cast<std::ptrdiff_t>(where.offset));
    });
    if (not from.empty()) size_ = std::max(size_, offset + from.size());
    return true;
}

void memory_content::truncate(std::uint64_t size) {
    // Bytes after the new end must be zero when the file grows again.
    if (size < size_) {
        const std::uint64_t pages = size / page_bytes + (size % page_bytes == 0 ? 0 : 1);
        const auto first = pages_.lower_bound(pages);
        budget_.pages_left += static_cast<std::uint64_t>(std::distance(first, pages_.end()));
        pages_.erase(first, pages_.end());
        if (const auto last = pages_.find(size / page_bytes); last != pages_.end())
            std::ranges::fill(std::span(*last->second).subspan(size % page_bytes), std::byte{});
    }
    size_ = size;
}

void memory_content::zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks) {
    if (offset >= size_) return;
    const std::uint64_t end = offset + std::min(length, size_ - offset);
    for (auto each = pages_.lower_bound(offset / page_bytes); each != pages_.end();) {
        const std::uint64_t start = each->first * page_bytes;
        if (start >= end) return;
        const std::uint64_t from = std::max(start, offset);
        const std::uint64_t to = std::min(start + page_bytes, end);
        if (frees_blocks and to - from == page_bytes) {
            each = pages_.erase(each);
            ++budget_.pages_left;
            continue;
        }
        std::ranges::fill(std::span(*each->second).subspan(from - start, to - from), std::byte{});
        ++each;
    }
}

std::span<io::extent_pair> memory_content::ranges(std::uint64_t offset, std::uint64_t length,
                                                  std::span<io::extent_pair> storage) const noexcept {
    if (offset >= size_) return storage.first(0);
    const std::uint64_t end = offset + std::min(length, size_ - offset);
    std::size_t filled = 0;
    for (auto each = pages_.lower_bound(offset / page_bytes); each != pages_.end(); ++each) {
        const std::uint64_t from = std::max(each->first * page_bytes, offset);
        const std::uint64_t to = std::min((each->first + 1) * page_bytes, end);
        if (from >= to) break;
        if (filled != 0 and storage[filled - 1].offset + storage[filled - 1].length == from) {
            storage[filled - 1].length += to - from;
        } else if (filled == storage.size()) {
            break;
        } else {
            storage[filled++] = {.offset = from, .length = to - from};
        }
    }
    return storage.first(filled);
}

}  // namespace sluice::vfs
