#include "sluice/cli/smb/sync_plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/smb/partial_names.hpp"

namespace sluice::cli {
namespace {

constexpr std::uint64_t ticks_per_second = 10'000'000;
constexpr std::uint64_t ticks_per_10_ms = ticks_per_second / 100;

[[nodiscard]] std::string_view parent_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

[[nodiscard]] std::string_view name_of(std::string_view path) noexcept {
    return path.substr(path.rfind('/') + 1);
}

class planner {
public:
    planner(const std::vector<sync_entry>& source, const std::vector<sync_entry>& target, sync_rules rules)
        : source_(source), target_(target), rules_(rules) {
        for (std::size_t i = 0; i != target.size(); ++i)
            targets_.emplace(key_of(target[i].path), i);
    }

    sync_plan make() {
        for (std::size_t i = 0; i != source_.size(); ++i)
            add(i);
        if (rules_.removes) add_removals();
        return std::move(plan_);
    }

private:
    [[nodiscard]] std::string key_of(const std::string& path) const {
        return rules_.ignores_case ? fold(path) : path;
    }

    // A skipped directory hides its contents, which are not reported one by one.
    void skip(const sync_entry& one, std::string why) {
        hidden_.insert(one.path);
        plan_.skipped.push_back({.path = one.path, .why = std::move(why)});
    }

    void add(std::size_t index) {
        const sync_entry& one = source_[index];
        // The source keeps the name in the target, also if this entry is skipped.
        kept_.insert(fold(one.path));
        if (hidden_.contains(parent_of(one.path))) {
            hidden_.insert(one.path);
            return;
        }
        if (partial_names::is_one(name_of(one.path)))
            return skip(one, "the partial file of an interrupted copy");
        if (one.is == sync_entry::kind::other) return skip(one, "neither a file nor a directory");
        if (not taken_.insert(key_of(one.path)).second)
            return skip(one, "another name in the same directory differs only in case");
        const auto there = targets_.find(key_of(one.path));
        if (there == targets_.end()) {
            (one.is == sync_entry::kind::directory ? plan_.directories : plan_.files).push_back(index);
            return;
        }
        const sync_entry& present = target_[there->second];
        has_common_name_ = true;
        if (present.is != one.is)
            return skip(one,
                        "the target has an object of another kind with this name, such as a link or a "
                        "mounted file system; remove it first");
        if (one.is == sync_entry::kind::directory) return;
        const bool is_same = one.bytes == present.bytes and is_same_time(one.modified, present.modified);
        (is_same ? plan_.same : plan_.files).push_back(index);
    }

    void add_removals() {
        if (not target_.empty() and not has_common_name_) {
            plan_.no_removal =
                source_.empty()
                    ? "the source is empty, so nothing is removed; use 'sluice rm -r' to empty the target"
                    : "source and target have no name in common, so nothing is removed; check the target";
            return;
        }
        // From the end: the contents come before their directory, and keep it if they stay.
        std::set<std::string, std::less<>> staying;
        const std::vector<bool> is_below_skipped = find_below_skipped();
        for (std::size_t i = target_.size(); i-- != 0;) {
            const std::string& path = target_[i].path;
            const bool stays = kept_.contains(fold(path)) or is_below_skipped[i] or staying.contains(path) or
                               partial_names::is_one(name_of(path));
            if (stays)
                staying.emplace(parent_of(path));
            else
                plan_.removals.push_back(i);
        }
    }

    // Returns which objects of the target are in a directory whose name the source has for an
    // entry that was skipped.
    [[nodiscard]] std::vector<bool> find_below_skipped() const {
        std::set<std::string, std::less<>> roots;
        for (const std::string& each : hidden_)
            roots.insert(fold(each));
        std::vector<bool> found(target_.size());
        for (std::size_t i = 0; i != target_.size(); ++i) {
            const std::string folded = fold(target_[i].path);
            found[i] = roots.contains(parent_of(folded));
            if (found[i]) roots.insert(folded);
        }
        return found;
    }

    const std::vector<sync_entry>& source_;
    const std::vector<sync_entry>& target_;
    sync_rules rules_;
    std::map<std::string, std::size_t> targets_;
    std::set<std::string> taken_;
    std::set<std::string> kept_;  // folded names of the source
    std::set<std::string, std::less<>> hidden_;
    bool has_common_name_ = false;
    sync_plan plan_;
};

}  // namespace

bool is_same_time(std::uint64_t one, std::uint64_t other) noexcept {
    const std::uint64_t difference = one > other ? one - other : other - one;
    if (difference == 0) return true;
    const auto is_either_multiple_of = [&](std::uint64_t unit) {
        return one % unit == 0 or other % unit == 0;
    };
    const bool are_both_whole = one % ticks_per_second == 0 and other % ticks_per_second == 0;
    const std::uint64_t unit = are_both_whole ? 2 * ticks_per_second : ticks_per_second;
    if (difference < 2 * ticks_per_second and is_either_multiple_of(unit)) return true;
    return difference < ticks_per_10_ms and is_either_multiple_of(ticks_per_10_ms);
}

sync_plan plan_sync(const std::vector<sync_entry>& source, const std::vector<sync_entry>& target,
                    sync_rules rules) {
    return planner(source, target, rules).make();
}

}  // namespace sluice::cli
