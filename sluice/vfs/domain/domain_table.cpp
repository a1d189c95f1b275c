#include "sluice/vfs/domain/domain_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "sluice/vfs/domain/limits.hpp"

namespace sluice::vfs {

result<domain_table::superblock> domain_table::superblock_of(const io::handle& open) const {
    struct statx raw{};
    constexpr unsigned wanted = STATX_TYPE | STATX_MNT_ID;
    if (::statx(open.descriptor(), "", AT_EMPTY_PATH, wanted, &raw) != 0)
        return failure(error::last("get status", open.descriptor()));
    const std::uint64_t device = makedev(raw.stx_dev_major, raw.stx_dev_minor);
    std::vector<mount_entry> mounts = parse_mountinfo(options_.read_mounts());
    // Kernels before 5.8 do not report the mount.
    const bool has_id = (raw.stx_mask & STATX_MNT_ID) != 0;
    const auto found = std::ranges::find_if(mounts, [&](const mount_entry& each) {
        return has_id ? each.id == raw.stx_mnt_id : each.device == device;
    });
    if (found == mounts.end()) return superblock{.device = device};
    return superblock{
        .device = found->device, .where = std::move(found->where), .type = std::move(found->type)};
}

result<std::shared_ptr<fs_domain>> domain_table::domain_of(const io::handle& open, bool always_offloaded) {
    const auto found = superblock_of(open);
    if (not found) return failure(found.error());
    const call_policy policy = always_offloaded ? call_policy::never_inline : policy_of_type(found->type);
    fs_domain_options wanted{.name = found->where,
                             .policy = policy,
                             .threads = {.threads_max = options_.workers_max, .clock = options_.clock}};

    std::shared_ptr<fs_domain> domain;
    {
        const std::scoped_lock guard(mutex_);
        std::erase_if(domains_, [](const auto& each) { return each.second.expired(); });
        if (const auto known = domains_.find(found->device); known != domains_.end())
            domain = known->second.lock();
        if (domain == nullptr and domains_.size() < limits::domains_max) {
            domain = std::make_shared<fs_domain>(std::move(wanted));
            domains_[found->device] = domain;
        } else if (domain == nullptr) {
            wanted.name = "other file systems";
            wanted.policy = call_policy::never_inline;
            if (overflow_ == nullptr) overflow_ = std::make_shared<fs_domain>(std::move(wanted));
            domain = overflow_;
        }
    }
    if (always_offloaded) domain->offload_always();
    if (domain->policy() == call_policy::never_inline) {
        if (const auto started = domain->start_first_worker(); not started) return failure(started.error());
    }
    return domain;
}

result<std::shared_ptr<fs_domain>> domain_table::make_crossing_domain(const std::string& name) {
    auto made = std::make_shared<fs_domain>(
        fs_domain_options{.name = name,
                          .policy = call_policy::never_inline,
                          .threads = {.threads_max = options_.workers_max, .clock = options_.clock}});
    if (const auto started = made->start_first_worker(); not started) return failure(started.error());
    const std::scoped_lock guard(mutex_);
    std::erase_if(crossing_, [](const auto& each) { return each.expired(); });
    crossing_.push_back(made);
    return made;
}

bool domain_table::has_mounts_in(std::string_view directory) {
    const std::scoped_lock guard(mutex_);
    // The check precedes the read, so that the next call detects later changes.
    if (options_.have_mounts_changed() or not knows_mounts_) {
        mounted_in_.clear();
        const std::string mounts = options_.read_mounts();
        for (const mount_entry& each : parse_mountinfo(mounts))
            mounted_in_.insert(each.where.substr(0, std::max<std::size_t>(1, each.where.rfind('/'))));
        knows_mounts_ = not mounts.empty();  // otherwise they are read again
    }
    return mounted_in_.contains(directory);
}

std::vector<std::shared_ptr<fs_domain>> domain_table::all() const {
    std::vector<std::shared_ptr<fs_domain>> found;
    const std::scoped_lock guard(mutex_);
    for (const auto& [device, each] : domains_)
        if (auto domain = each.lock()) found.push_back(std::move(domain));
    for (const auto& each : crossing_)
        if (auto domain = each.lock()) found.push_back(std::move(domain));
    if (overflow_ != nullptr) found.push_back(overflow_);
    return found;
}

std::shared_ptr<fs_domain> domain_table::find(std::uint32_t number) const {
    for (auto& each : all())
        if (each->number() == number) return each;
    return nullptr;
}

}  // namespace sluice::vfs
