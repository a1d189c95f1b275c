#include "sluice/fat/name_index.hpp"

#include <algorithm>
#include <functional>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::size_t heads_min = 16;

std::uint32_t hash_of(std::string_view text) noexcept {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(text));
}

std::string_view text_of(const short_name_bytes& name) noexcept {
    return {reinterpret_cast<const char*>(name.data()), name.size()};
}

}  // namespace

std::uint32_t& name_index::chain(key by, std::uint32_t hash) noexcept {
    return heads_[by][hash & (heads_[by].size() - 1)];
}

void name_index::link(node& one) noexcept {
    for (const key by : {by_name, by_alias, by_short}) {
        if (by == by_alias and one.entry.alias.empty()) continue;
        // Behind the first of those with the same key, so that each search ends with that.
        std::uint32_t* at = &chain(by, one.hash[by]);
        while (*at != nobody and by_slot_[*at]->hash[by] != one.hash[by])
            at = &by_slot_[*at]->next[by];
        if (*at != nobody) at = &by_slot_[*at]->next[by];
        one.next[by] = *at;
        *at = one.entry.slot;
    }
}

void name_index::grow() {
    const std::size_t heads = std::max(heads_min, heads_[0].size() * 2);
    for (auto& each : heads_)
        each.assign(heads, nobody);
    for (const auto& each : by_slot_)
        if (each != nullptr) link(*each);
}

const name_entry* name_index::add(name_entry entry) {
    if (nodes_ >= heads_[0].size()) grow();
    const std::uint32_t slot = entry.slot;
    if (slot >= by_slot_.size()) by_slot_.resize(slot + 1);
    ENSURE(by_slot_[slot] == nullptr);
    auto made = std::make_unique<node>();
    made->hash = {hash_of(fold(entry.name)), hash_of(entry.alias), hash_of(text_of(entry.short_name))};
    made->entry = std::move(entry);
    link(*made);
    ++nodes_;
    ++count_;
    by_slot_[slot] = std::move(made);
    return &by_slot_[slot]->entry;
}

void name_index::leave(std::uint32_t slot) noexcept {
    ENSURE(at(slot) != nullptr);
    by_slot_[slot]->is_leaving = true;
    --count_;
}

void name_index::erase(std::uint32_t slot) noexcept {
    const std::unique_ptr<node> gone = std::move(by_slot_[slot]);
    ENSURE(gone != nullptr);
    for (const key by : {by_name, by_alias, by_short}) {
        if (by == by_alias and gone->entry.alias.empty()) continue;
        std::uint32_t* link = &chain(by, gone->hash[by]);
        while (*link != slot)
            link = &by_slot_[*link]->next[by];
        *link = gone->next[by];
    }
    --nodes_;
    if (not gone->is_leaving) --count_;
}

template <class Matches>
const name_index::node* name_index::search(key by, std::uint32_t hash, Matches matches) const noexcept {
    if (heads_[by].empty()) return nullptr;
    for (std::uint32_t slot = heads_[by][hash & (heads_[by].size() - 1)]; slot != nobody;) {
        const node& each = *by_slot_[slot];
        if (each.hash[by] == hash and matches(each)) return &each;
        slot = each.next[by];
    }
    return nullptr;
}

const name_index::node* name_index::search_text(std::string_view folded, bool is_leaving) const noexcept {
    const std::uint32_t hash = hash_of(folded);
    const node* const found = search(by_name, hash, [&](const node& each) {
        return each.is_leaving == is_leaving and equal_ignoring_case(each.entry.name, folded);
    });
    if (found != nullptr) return found;
    return search(by_alias, hash, [&](const node& each) {
        return each.is_leaving == is_leaving and each.entry.alias == folded;
    });
}

const name_entry* name_index::find(std::string_view folded) const noexcept {
    const node* const found = search_text(folded, false);
    return found == nullptr ? nullptr : &found->entry;
}

bool name_index::is_leaving(std::string_view folded) const noexcept {
    return search_text(folded, true) != nullptr;
}

bool name_index::has_short(const short_name_bytes& name) const noexcept {
    const auto matches = [&](const node& each) { return each.entry.short_name == name; };
    return search(by_short, hash_of(text_of(name)), matches) != nullptr;
}

const name_entry* name_index::at(std::uint32_t slot) const noexcept {
    if (slot >= by_slot_.size() or by_slot_[slot] == nullptr or by_slot_[slot]->is_leaving) return nullptr;
    return &by_slot_[slot]->entry;
}

const name_entry* name_index::next(std::uint32_t from) const noexcept {
    for (std::uint32_t slot = from; slot < by_slot_.size(); ++slot)
        if (const name_entry* const found = at(slot)) return found;
    return nullptr;
}

}  // namespace sluice::fat
