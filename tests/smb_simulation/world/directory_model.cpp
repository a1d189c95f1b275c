#include "tests/smb_simulation/world/directory_model.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::access_mask;
using wire::create_disposition;
using wire::nt_status;
using wire::share_access;

namespace {

[[nodiscard]] share_access needed_by(access_mask access) noexcept {
    share_access needed = share_access::none;
    if (wire::has(access, access_mask::read_data)) needed |= share_access::read;
    if (wire::has(access, access_mask::write_data)) needed |= share_access::write;
    if (wire::has(access, access_mask::delete_object)) needed |= share_access::remove;
    return needed;
}

constexpr std::array kinds{"create", "close", "dispose", "rename", "link", "lock", "unlock"};

}  // namespace

std::optional<std::size_t> directory_model::entry_of(std::uint8_t name) const {
    for (const auto& [id, each] : entries_)
        if (each.name == name) return id;
    return {};
}

nt_status directory_model::create(const operation_seen& asked, std::size_t index) {
    const bool must_exist = asked.disposition == create_disposition::open;
    const auto found = entry_of(asked.name);
    if (not found) {
        if (must_exist) return nt_status::object_name_not_found;
        entries_[index] = {.file = index, .name = asked.name};
        opens_[index] = {.file = index,
                         .entry = index,
                         .access = asked.access,
                         .share = asked.share,
                         .deletes_on_close = asked.deletes_on_close};
        return nt_status::success;
    }
    const std::size_t file = entries_[*found].file;
    if (removals_.contains(file) and removals_[file].is_pending) return nt_status::delete_pending;
    if (asked.disposition == create_disposition::create) return nt_status::object_name_collision;
    const share_access needed = needed_by(asked.access);
    for (const auto& [id, other] : opens_) {
        if (other.file != file) continue;
        if (not wire::has(other.share, needed) or not wire::has(asked.share, needed_by(other.access)))
            return nt_status::sharing_violation;
    }
    opens_[index] = {.file = file,
                     .entry = *found,
                     .access = asked.access,
                     .share = asked.share,
                     .deletes_on_close = asked.deletes_on_close};
    return nt_status::success;
}

nt_status directory_model::close(std::size_t open) {
    const std::size_t file = opens_[open].file;
    if (opens_[open].deletes_on_close) {
        removals_[file].is_pending = true;
        removals_[file].entries.insert(opens_[open].entry);
    }
    opens_.erase(open);
    const bool is_last =
        std::ranges::none_of(opens_, [&](const auto& each) { return each.second.file == file; });
    if (not is_last) return nt_status::success;
    if (removals_[file].is_pending)
        for (const std::size_t each : removals_[file].entries)
            entries_.erase(each);
    removals_.erase(file);
    return nt_status::success;
}

nt_status directory_model::rename(const operation_seen& asked) {
    const open_file& by = opens_[asked.open];
    if (not wire::has(by.access, access_mask::delete_object)) return nt_status::access_denied;
    const auto taken = entry_of(asked.name);
    if (taken and *taken != by.entry) {
        const std::size_t file = entries_[*taken].file;
        if (file == by.file and not entries_.contains(by.entry)) return nt_status::object_name_not_found;
        if (not asked.replaces) return nt_status::object_name_collision;
        const bool is_open =
            std::ranges::any_of(opens_, [&](const auto& each) { return each.second.file == file; });
        // Another name of the same file is replaced although it is open.
        if (is_open and file != by.file) return nt_status::access_denied;
    }
    // Another name of the file has replaced its own name.
    if (not entries_.contains(by.entry)) return nt_status::object_name_not_found;
    if (taken and *taken != by.entry) entries_.erase(*taken);
    entries_[by.entry].name = asked.name;
    return nt_status::success;
}

nt_status directory_model::link(const operation_seen& asked) {
    if (entry_of(asked.name)) return nt_status::object_name_collision;
    if (not entries_.contains(opens_[asked.open].entry)) return nt_status::object_name_not_found;
    const std::size_t id = asked.sent + 1000;  // no operation has such an index
    entries_[id] = {.file = opens_[asked.open].file, .name = asked.name};
    return nt_status::success;
}

nt_status directory_model::lock(const operation_seen& asked) {
    open_file& by = opens_[asked.open];
    if (asked.what == operation_seen::kind::unlock)
        return by.locks.erase(asked.range) != 0 ? nt_status::success : nt_status::range_not_locked;
    for (const auto& [id, other] : opens_)
        if (other.file == by.file and other.locks.contains(asked.range)) return nt_status::lock_not_granted;
    by.locks.insert(asked.range);
    return nt_status::success;
}

nt_status directory_model::apply(const history& all, std::size_t index) {
    using kind = operation_seen::kind;
    const operation_seen& asked = all[index];
    if (asked.what == kind::create) return create(asked, index);
    if (not opens_.contains(asked.open)) return nt_status::file_closed;
    switch (asked.what) {
        case kind::close:
            return close(asked.open);
        case kind::rename:
            return rename(asked);
        case kind::link:
            return link(asked);
        case kind::dispose: {
            const open_file& by = opens_[asked.open];
            if (not wire::has(by.access, access_mask::delete_object)) return nt_status::access_denied;
            removal& of = removals_[by.file];
            of.is_pending = asked.replaces;
            if (asked.replaces)
                of.entries.insert(by.entry);
            else
                of.entries.clear();
            return nt_status::success;
        }
        default:
            return lock(asked);
    }
}

std::string directory_model::text() const {
    std::string all;
    const auto add = [&](std::size_t number) { all += std::to_string(number) + ','; };
    for (const auto& [id, each] : entries_)
        add(id), add(each.file), add(each.name);
    all += ';';
    for (const auto& [id, each] : opens_) {
        add(id), add(each.file), add(each.entry), add(each.deletes_on_close);
        for (const std::uint8_t range : each.locks)
            add(range);
        all += '/';
    }
    all += ';';
    for (const auto& [file, each] : removals_) {
        if (not each.is_pending) continue;
        add(file);
        for (const std::size_t entry : each.entries)
            add(entry);
        all += '/';
    }
    return all;
}

namespace {

// Depth-first search (Wing and Gong), without states that were reached before (Lowe).
class search {
public:
    explicit search(const history& all) : all_(all) {}

    [[nodiscard]] bool from(const directory_model& state, std::uint64_t done) {
        if (done == (std::uint64_t{1} << all_.size()) - 1) return true;
        if (not seen_.insert(std::to_string(done) + ' ' + state.text()).second) return false;
        // The next operation in order was sent before the first answer to a remaining one.
        std::uint64_t first_answer = ~std::uint64_t{0};
        for (std::size_t i = 0; i != all_.size(); ++i)
            if (not is_in(done, i)) first_answer = std::min(first_answer, all_[i].answered);
        for (std::size_t i = 0; i != all_.size(); ++i) {
            if (is_in(done, i) or all_[i].sent > first_answer) continue;
            directory_model next = state;
            if (next.apply(all_, i) != all_[i].status) continue;
            if (from(next, done | std::uint64_t{1} << i)) return true;
        }
        return false;
    }

private:
    [[nodiscard]] static bool is_in(std::uint64_t set, std::size_t one) noexcept {
        return (set >> one & 1) != 0;
    }

    const history& all_;
    std::unordered_set<std::string> seen_;
};

// A CLOSE that deletes has two effects, which others may see one after the other: opens are
// refused, and the name goes. The first one becomes an operation of its own.
[[nodiscard]] history with_dispositions_of_closes(const history& all) {
    history both = all;
    for (const operation_seen& each : all) {
        const bool deletes = each.what == operation_seen::kind::close and all[each.open].deletes_on_close;
        if (not deletes) continue;
        both.push_back(each);
        both.back().what = operation_seen::kind::dispose;
        both.back().replaces = true;
    }
    return both;
}

}  // namespace

bool is_linearizable(const history& all) {
    const history effects = with_dispositions_of_closes(all);
    ENSURE(effects.size() < 64, "a history has a bit for each operation");
    return search(effects).from({}, 0);
}

std::string to_text(const history& all) {
    std::string text;
    for (std::size_t i = 0; i != all.size(); ++i) {
        const operation_seen& each = all[i];
        text += std::to_string(i) + ": client " + std::to_string(each.client) + " " +
                std::to_string(each.sent) + ".." + std::to_string(each.answered) + " " +
                kinds[static_cast<std::size_t>(each.what)] + " name " + std::to_string(each.name) + " open " +
                std::to_string(each.open) + " disposition " +
                std::to_string(static_cast<unsigned>(each.disposition)) + " access " +
                std::to_string(static_cast<unsigned>(each.access)) + " share " +
                std::to_string(static_cast<unsigned>(each.share)) + (each.replaces ? " replacing" : "") +
                (each.deletes_on_close ? " deleting on close" : "") + " range " + std::to_string(each.range) +
                ": " + std::string(wire::name_of(each.status)) + "\n";
    }
    return text;
}

}  // namespace sluice::smb_simulation
