#include "sluice/smb/server/open/open_table.hpp"

#include <algorithm>
#include <utility>

namespace sluice::smb::server {

open_table::open_table(std::uint64_t base) noexcept {
    // Of 64 bits, one stays clear, and the last four are those of the shard.
    for (shard& each : shards_) {
        const lock_guard held(each.mutex);
        each.next = 1 + (base >> 5);
    }
}

std::shared_ptr<open> open_table::make_in(shard& in, const client_reference& by) {
    if (not by) return nullptr;
    quota_hold counted = by.quotas().take(by, limit::opens);
    if (counted.amount() == 0) return nullptr;
    auto one = std::allocate_shared<open>(std::pmr::polymorphic_allocator<open>(&in.memory));
    one->counted = std::move(counted);
    one->in_file_.counted_locks = by.quotas().take(by, limit::locks, 0);
    return one;
}

std::shared_ptr<open> open_table::make(const client_reference& by, std::size_t loop) {
    shard& in = shards_[loop % shards];
    std::shared_ptr<open> one = make_in(in, by);
    if (one == nullptr) return nullptr;
    const lock_guard held(in.mutex);
    const std::uint64_t number = in.next++ * shards + loop % shards;
    one->id = {.persistent_part = le64(number), .volatile_part = le64(number)};
    ENSURE(&shard_of(number) == &in, "the number of an open names its shard");
    ENSURE(in.opens.emplace(number, one).second, "a number is given to one open");
    return one;
}

std::shared_ptr<open> open_table::restore(const client_reference& by, std::uint64_t number) {
    // The next numbers must not reach it, as long as this process may run.
    constexpr std::uint64_t distance_min = std::uint64_t{1} << 48;
    shard& in = shard_of(number);
    std::shared_ptr<open> one = make_in(in, by);
    if (one == nullptr) return nullptr;
    const lock_guard held(in.mutex);
    if (not in.opens.emplace(number, one).second) return nullptr;
    one->id = {.persistent_part = le64(number), .volatile_part = le64(number)};
    const std::uint64_t step = number / shards;
    if (step - in.next < distance_min) in.next = step + 1;
    ENSURE(in.next != step, "a number is given to one open");
    return one;
}

void open_table::remove(const open& one) noexcept {
    std::shared_ptr<open> removed;  // perhaps the last to hold it: released without the mutex
    shard& in = shard_of(one.id.persistent_part.value());
    const lock_guard held(in.mutex);
    const auto found = in.opens.find(one.id.persistent_part.value());
    if (found == in.opens.end()) return;
    ENSURE(found->second.get() == &one, "an open is found by its own number");
    removed = std::move(found->second);
    in.opens.erase(found);
}

std::shared_ptr<open> open_table::find(const wire::file_id& id) const noexcept {
    std::shared_ptr<open> found = find_persistent(id.persistent_part.value());
    if (found != nullptr and found->id != id) found.reset();
    return found;
}

std::shared_ptr<open> open_table::find_persistent(std::uint64_t persistent) const noexcept {
    const shard& in = shard_of(persistent);
    const lock_guard held(in.mutex);
    const auto found = in.opens.find(persistent);
    ENSURE(found == in.opens.end() or found->second->id.persistent_part.value() == persistent,
           "an open in the table has the number that it is found by");
    return found == in.opens.end() ? nullptr : found->second;
}

std::shared_ptr<open> open_table::find_by_end(std::uint32_t end) const noexcept {
    static_assert((1ULL << 32) % shards == 0, "the last bits of a number name its shard");
    const shard& in = shard_of(end);
    std::shared_ptr<open> found;
    const lock_guard held(in.mutex);
    for (std::uint64_t number = end; number < in.next * shards; number += 1ULL << 32) {
        const auto one = in.opens.find(number);
        if (one == in.opens.end()) continue;
        if (found != nullptr) return nullptr;
        found = one->second;
    }
    ENSURE(found == nullptr or static_cast<std::uint32_t>(found->id.persistent_part.value()) == end,
           "an open is found by the end of its number");
    return found;
}

std::vector<std::uint32_t> open_table::ends_after(std::uint32_t after, std::size_t most) const {
    std::vector<std::uint32_t> ends;
    for (const shard& in : shards_) {
        const lock_guard held(in.mutex);
        for (const auto& [number, one] : in.opens)
            if (const auto end = static_cast<std::uint32_t>(number); end > after) ends.push_back(end);
    }
    if (ends.size() > most) {
        std::ranges::nth_element(ends, ends.begin() + static_cast<std::ptrdiff_t>(most));
        ends.resize(most);
    }
    std::ranges::sort(ends);
    ENSURE(ends.empty() or ends.front() > after, "a list continues after the open before it");
    return ends;
}

std::vector<std::shared_ptr<open>> open_table::all() const {
    std::vector<std::shared_ptr<open>> all;
    for (const shard& in : shards_) {
        const lock_guard held(in.mutex);
        for (const auto& [number, one] : in.opens)
            all.push_back(one);
    }
    return all;
}

std::vector<std::uint64_t> open_table::numbers() const {
    std::vector<std::uint64_t> all;
    for (const shard& in : shards_) {
        const lock_guard held(in.mutex);
        for (const auto& [number, one] : in.opens)
            all.push_back(number);
    }
    return all;
}

std::size_t open_table::size() const noexcept {
    std::size_t sum = 0;
    for (const shard& in : shards_) {
        const lock_guard held(in.mutex);
        sum += in.opens.size();
    }
    return sum;
}

}  // namespace sluice::smb::server
