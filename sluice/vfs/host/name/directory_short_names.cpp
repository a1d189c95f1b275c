#include "sluice/vfs/host/name/directory_short_names.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

using kind = short_name_record::kind;

using entry = short_name_record::entry;

std::pair<std::uint32_t, kind> key_of(const entry& one) noexcept {
    return {one.number, one.what};
}

auto order_of(const entry& one) noexcept {
    return std::tuple(one.number, one.what, one.attempt, one.name.view());
}

// Returns the first entry of this number and kind; null if there is none.
const entry* entry_of(std::span<const entry> sorted, std::uint32_t number, kind what) noexcept {
    const std::pair wanted(number, what);
    const auto found = std::ranges::lower_bound(sorted, wanted, {}, key_of);
    return found == sorted.end() or key_of(*found) != wanted ? nullptr : &*found;
}

}  // namespace

directory_short_names::directory_short_names(std::vector<std::string> names, const short_name_record& record,
                                             const directory_short_names* before,
                                             const std::function<time_point(const std::string& name)>& born) {
    std::ranges::sort(names);
    const auto twice = std::ranges::unique(names);
    names.erase(twice.begin(), twice.end());
    files_.reserve(names.size());
    for (std::string& each : names)
        files_.push_back({.name = std::move(each)});
    for (std::uint32_t index = 0; index != files_.size(); ++index) {
        const std::string_view name = files_[index].name;
        if (is_short_name(name)) taken_.emplace(short_name(name), index);
    }
    std::vector<entry> by_number = record.entries;
    std::ranges::sort(by_number, {}, order_of);
    for (const entry& each : by_number)
        if (each.what == kind::used_up) used_up_.push_back(each.number);
    claim_recorded(by_number);
    if (before != nullptr) claim_as_before(*before);
    claim_first_free(by_number, born);
}

const directory_short_names::file* directory_short_names::at(std::string_view name) const noexcept {
    const auto found = std::ranges::lower_bound(files_, name, {}, &file::name);
    return found == files_.end() or found->name != name ? nullptr : &*found;
}

short_name directory_short_names::of(std::string_view name) const noexcept {
    const file* const one = at(name);
    return one == nullptr ? short_name() : one->own;
}

std::string_view directory_short_names::find(const short_name& wanted) const noexcept {
    const auto found = taken_.find(wanted);
    if (found == taken_.end()) return {};
    ENSURE(found->second < files_.size(), "invariant 2");
    return files_[found->second].name;
}

// Whether the file gets a short name without a client's choice.
bool directory_short_names::generates(const file& one) noexcept {
    return one.how != by_client and not is_short_name(one.name);
}

bool directory_short_names::claim(std::uint32_t index, const short_name& wanted, std::uint8_t how) {
    ENSURE(index < files_.size() and files_[index].how == by_none, "a file gets its short name once");
    if (not wanted.empty()) {
        const auto [there, is_free] = taken_.try_emplace(wanted, index);
        if (not is_free and there->second != index) return false;
    }
    files_[index].own = wanted;
    files_[index].how = how;
    return true;
}

// First the choices of clients, which have precedence over generated names.
void directory_short_names::claim_recorded(sorted_entries record) {
    if (record.empty()) return;
    std::vector<std::uint32_t> numbers;
    numbers.reserve(files_.size());
    for (const file& each : files_)
        numbers.push_back(record_number(each.name));
    for (std::uint32_t index = 0; index != files_.size(); ++index)
        if (const auto* const chosen = entry_of(record, numbers[index], kind::chosen))
            (void)claim(index, chosen->name, by_client);
    for (std::uint32_t index = 0; index != files_.size(); ++index) {
        if (files_[index].how != by_none or not generates(files_[index])) continue;
        if (const auto* const made = entry_of(record, numbers[index], kind::generated))
            (void)claim(index, short_name_for(files_[index].name, made->attempt), made->attempt);
    }
}

void directory_short_names::claim_as_before(const directory_short_names& before) {
    for (std::uint32_t index = 0; index != files_.size(); ++index) {
        if (files_[index].how != by_none or not generates(files_[index])) continue;
        const file* const old = before.at(files_[index].name);
        if (old != nullptr and old->how < short_name_attempts_max) (void)claim(index, old->own, old->how);
    }
}

void directory_short_names::claim_first_free(sorted_entries record,
                                             const std::function<time_point(const std::string& name)>& born) {
    std::vector<competitor> rest;
    for (std::uint32_t index = 0; index != files_.size(); ++index)
        if (files_[index].how == by_none and generates(files_[index]))
            rest.push_back({.first = short_name_for(files_[index].name, 0), .index = index});
    // The index keeps equal ones in order.
    std::ranges::sort(rest, {},
                      [](const competitor& each) { return std::pair(each.first.view(), each.index); });
    for (auto group = rest.begin(); group != rest.end();) {
        const auto end = std::find_if(group, rest.end(),
                                      [&](const competitor& each) { return each.first != group->first; });
        const bool has_hash = entry_of(record, record_number(group->first.view()), kind::used_up) != nullptr;
        if (not has_hash and end - group > 1) {
            for (competitor& each : std::ranges::subrange(group, end))
                each.born = born(files_[each.index].name);
            std::ranges::sort(group, end, {},
                              [](const competitor& each) { return std::pair(each.born, each.index); });
        }
        for (const competitor& each : std::ranges::subrange(group, end))
            claim_from(each.index, has_hash ? plain_short_name_attempts : 0);
        group = end;
    }
}

void directory_short_names::claim_from(std::uint32_t index, std::uint32_t attempt) {
    for (; attempt != short_name_attempts_max; ++attempt)
        if (claim(index, short_name_for(files_[index].name, attempt), static_cast<std::uint8_t>(attempt)))
            return;
}

short_name_record directory_short_names::record() const {
    struct family {
        std::uint32_t size = 0;
        bool has_hash = false;
    };
    // By their first short name.
    std::map<short_name, family> families;
    for (const file& each : files_) {
        if (not generates(each) or each.how == by_none) continue;
        family& own = families[short_name_for(each.name, 0)];
        ++own.size;
        own.has_hash = own.has_hash or each.how >= plain_short_name_attempts;
    }
    short_name_record found;
    for (const file& each : files_) {
        if (each.how == by_client)
            found.entries.push_back(
                {.number = record_number(each.name), .what = kind::chosen, .name = each.own});
        if (not generates(each) or each.how >= plain_short_name_attempts) continue;
        if (each.how != 0 or families[short_name_for(each.name, 0)].size > 1)
            found.entries.push_back({.number = record_number(each.name), .attempt = each.how});
    }
    for (const auto& [first, own] : families) {
        const std::uint32_t number = record_number(first.view());
        if (own.has_hash or std::ranges::binary_search(used_up_, number))
            found.entries.push_back({.number = number, .what = kind::used_up});
    }
    std::ranges::sort(found.entries, {}, order_of);
    return found;
}

}  // namespace sluice::vfs
