#include "sluice/fat/engine/name_index.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::size_t heads_min = 16;

}  // namespace

void name_index::node_list::add() {
    const place fresh = place_of(static_cast<std::uint32_t>(size_));
    ENSURE(fresh.piece <= pieces_.size(), "each piece is full before the next begins");
    if (fresh.piece == pieces_.size())
        pieces_.push_back(std::make_unique<node[]>(std::size_t{1} << (fresh.piece + first_bits)));
    ++size_;
}

std::uint32_t& name_index::chain(key by, std::uint32_t hash) noexcept {
    return heads_[by][hash & (heads_[by].size() - 1)];
}

void name_index::put_in_chains(std::uint32_t number) noexcept {
    ENSURE(number < links_.size() and links_.size() == nodes_.size(), "each name has its links");
    for (const key by : {by_name, by_alias}) {
        if (by == by_alias and nodes_[number].entry.alias.empty()) continue;
        link& own = links_[number][by];
        // Insert after the first entry with the same key, so that each search ends with that one.
        std::uint32_t* at = &chain(by, own.hash);
        while (*at != nobody and links_[*at][by].hash != own.hash)
            at = &links_[*at][by].next;
        if (*at != nobody) at = &links_[*at][by].next;
        own.next = *at;
        *at = number;
    }
}

void name_index::grow() {
    const std::size_t heads = std::max(heads_min, heads_[0].size() * 2);
    ENSURE(std::has_single_bit(heads), "a hash chooses a chain by its low bits");
    for (auto& each : heads_)
        each.assign(heads, nobody);
    for (const std::uint32_t number : numbers_)
        if (number != nobody) put_in_chains(number);
}

const name_entry* name_index::add(name_entry entry) {
    if (numbers_used() >= heads_[0].size()) grow();
    const std::uint32_t slot = entry.slot;
    if (slot >= numbers_.size()) numbers_.resize(slot + 1, nobody);
    ENSURE(numbers_[slot] == nobody);
    if (unused_.empty()) {
        unused_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        nodes_.add();
        links_.emplace_back();
    }
    const std::uint32_t number = unused_.back();
    unused_.pop_back();
    ENSURE(number < nodes_.size());
    numbers_[slot] = number;
    links_[number][by_name].hash = hash_ignoring_case(entry.name);
    links_[number][by_alias].hash = hash_ignoring_case(entry.alias);
    nodes_[number] = {.entry = std::move(entry)};
    put_in_chains(number);
    ENSURE(numbers_used() <= numbers_.size(), "each name has a slot of its own");
    return &nodes_[number].entry;
}

void name_index::leave(std::uint32_t slot) noexcept {
    ENSURE(at(slot) != nullptr);
    node& leaver = nodes_[numbers_[slot]];
    leaver.is_leaving = true;
    leaver.entry.use = {};  // it is not found by its name any more
    ++leaving_;
    ENSURE(leaving_ <= numbers_used(), "leaving names are still in the index");
}

void name_index::erase(std::uint32_t slot) noexcept {
    ENSURE(number_at(slot) != nobody);
    const std::uint32_t number = std::exchange(numbers_[slot], nobody);
    node& gone = nodes_[number];
    ENSURE(gone.entry.slot == slot and (leaving_ != 0 or not gone.is_leaving));
    for (const key by : {by_name, by_alias}) {
        if (by == by_alias and gone.entry.alias.empty()) continue;
        std::uint32_t* at = &chain(by, links_[number][by].hash);
        while (*at != number) {
            ENSURE(*at != nobody, "a name is in the chains of its keys");
            at = &links_[*at][by].next;
        }
        *at = links_[number][by].next;
    }
    unused_.push_back(number);
    if (gone.is_leaving) --leaving_;
    ENSURE(leaving_ <= numbers_used(), "leaving names are still in the index");
    gone.entry = {};
}

template <class Matches>
const name_index::node* name_index::search(key by, std::uint32_t hash, Matches matches) const noexcept {
    if (heads_[by].empty()) return nullptr;
    for (std::uint32_t number = heads_[by][hash & (heads_[by].size() - 1)]; number != nobody;) {
        const link& each = links_[number][by];
        if (each.hash == hash and matches(nodes_[number])) return &nodes_[number];
        number = each.next;
    }
    return nullptr;
}

template <class IsWanted>
const name_entry* name_index::search(std::string_view name, IsWanted is_wanted) const {
    const std::uint32_t hash = hash_ignoring_case(name);
    const node* found = search(by_name, hash, [&](const node& each) {
        return is_wanted(each) and equal_ignoring_case(each.entry.name, name);
    });
    if (found == nullptr)
        found = search(by_alias, hash, [&](const node& each) {
            return is_wanted(each) and equal_ignoring_case(each.entry.alias, name);
        });
    return found == nullptr ? nullptr : &found->entry;
}

const name_entry* name_index::find(std::string_view name) const {
    return search(name, [](const node& each) { return not each.is_leaving; });
}

bool name_index::is_leaving(std::string_view name) const {
    return leaving_ != 0 and search(name, [](const node& each) { return each.is_leaving; }) != nullptr;
}

bool name_index::has(std::string_view name) const {
    return search(name, [](const node&) { return true; }) != nullptr;
}

const name_entry* name_index::at(std::uint32_t slot) const noexcept {
    const std::uint32_t number = number_at(slot);
    if (number == nobody or nodes_[number].is_leaving) return nullptr;
    return &nodes_[number].entry;
}

const name_entry* name_index::next(std::uint32_t from) const noexcept {
    for (std::uint32_t slot = from; slot < numbers_.size(); ++slot)
        if (const name_entry* const found = at(slot)) return found;
    return nullptr;
}

}  // namespace sluice::fat
