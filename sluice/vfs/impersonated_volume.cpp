#include "sluice/vfs/impersonated_volume.hpp"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

// For this thread alone: the C library's setgroups would change every thread.
bool set_groups_of_thread(const std::vector<gid_t>& groups) noexcept {
    return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

// These calls report no failure, only what held before; so they are made twice.
bool set_user_of_thread(uid_t user) noexcept {
    (void)::setfsuid(user);
    return static_cast<uid_t>(::setfsuid(user)) == user;
}
bool set_group_of_thread(gid_t group) noexcept {
    (void)::setfsgid(group);
    return static_cast<gid_t>(::setfsgid(group)) == group;
}

struct identities {
    const unix_account& account;
    const std::vector<gid_t>& own_groups;
};

/// The account's identity, for as long as this lives. The user comes last and goes first: with it go the
/// capabilities that override permissions. To go on with the wrong one would be a hole, so failures stop the
/// program; whether it is allowed at all was found out when the volume was made.
class as_account {
public:
    explicit as_account(const identities& who) noexcept : who_(who) {
        ENSURE(set_groups_of_thread(who.account.groups));
        ENSURE(set_group_of_thread(who.account.group_id));
        ENSURE(set_user_of_thread(who.account.user_id));
    }
    as_account(const as_account&) = delete;
    as_account& operator=(const as_account&) = delete;
    ~as_account() {
        ENSURE(set_user_of_thread(::geteuid()));
        ENSURE(set_group_of_thread(::getegid()));
        ENSURE(set_groups_of_thread(who_.own_groups));
    }

private:
    const identities& who_;
};

class impersonated_listing final : public directory_listing {
public:
    impersonated_listing(identities who, std::unique_ptr<directory_listing> behind)
        : who_(who), behind_(std::move(behind)) {}
    [[nodiscard]] result<const listed_name*> next() noexcept override {
        const as_account now(who_);
        return behind_->next();
    }

private:
    identities who_;
    std::unique_ptr<directory_listing> behind_;
};

class impersonated_node final : public node {
public:
    impersonated_node(identities who, node_ptr behind) : who_(who), behind_(std::move(behind)) {}

    [[nodiscard]] node& behind() noexcept { return *behind_; }

    // What is known, or open, asks for no rights.
    [[nodiscard]] node_kind kind() const noexcept override { return behind_->kind(); }
    [[nodiscard]] file_key key() const noexcept override { return behind_->key(); }
    [[nodiscard]] std::string path() const override { return behind_->path(); }
    [[nodiscard]] std::string_view stream_name() const noexcept override { return behind_->stream_name(); }
    [[nodiscard]] bool transfers_at_once() const noexcept override { return behind_->transfers_at_once(); }
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into,
                                                        std::uint64_t offset) noexcept override {
        return behind_->co_read(into, offset);
    }
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from,
                                                  std::uint64_t offset) noexcept override {
        io::file_handle* const file = behind_->host_file();
        if (file == nullptr) return behind_->co_write(from, offset);
        return co_write_in_place(*file, from, offset);
    }
    [[nodiscard]] io::task<result<void>> co_flush() noexcept override { return behind_->co_flush(); }
    [[nodiscard]] io::file_handle* host_file() noexcept override { return behind_->host_file(); }
    [[nodiscard]] bool lends() noexcept override { return behind_->lends(); }
    [[nodiscard]] result<host_runs> lend(io::extent_pair range, std::size_t runs_max) noexcept override {
        return behind_->lend(range, runs_max);
    }

    [[nodiscard]] result<metadata> status() noexcept override {
        return as([&] { return behind_->status(); });
    }
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override {
        return as([&] { return behind_->change(wanted); });
    }
    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override {
        return as([&] { return behind_->open_data(wanted); });
    }
    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override {
        return as([&] { return behind_->truncate(size_bytes); });
    }
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override {
        return as([&] { return behind_->allocate(size_bytes); });
    }
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool give_back) noexcept override {
        return as([&] { return behind_->zero(offset, length, give_back); });
    }
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override {
        return as([&] { return behind_->allocated_ranges(offset, length, storage); });
    }
    [[nodiscard]] result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override {
        auto* const other = dynamic_cast<impersonated_node*>(&destination);
        node& to = other != nullptr ? other->behind() : destination;
        return as([&] { return behind_->clone_to(to, source, destination_offset, only_shared); });
    }
    [[nodiscard]] result<void> rename(std::string_view path, when_taken taken) noexcept override {
        return as([&] { return behind_->rename(path, taken); });
    }
    [[nodiscard]] result<void> link(std::string_view path, when_taken taken) noexcept override {
        return as([&] { return behind_->link(path, taken); });
    }
    [[nodiscard]] result<void> remove() noexcept override {
        return as([&] { return behind_->remove(); });
    }
    [[nodiscard]] result<std::string> read_link() noexcept override {
        return as([&] { return behind_->read_link(); });
    }
    [[nodiscard]] result<void> become_link(std::string_view target) noexcept override {
        return as([&] { return behind_->become_link(target); });
    }
    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override {
        return as([&] { return behind_->streams(); });
    }
    [[nodiscard]] result<node_ptr> open_stream(const stream_request& wanted) noexcept override {
        auto opened = as([&] { return behind_->open_stream(wanted); });
        if (not opened) return opened;
        return std::make_unique<impersonated_node>(who_, std::move(*opened));
    }
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override {
        return as([&] { return behind_->extended_attributes(); });
    }
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override {
        return as([&] { return behind_->set_extended_attribute(name, value); });
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        return as([&] { return behind_->security(); });
    }
    [[nodiscard]] result<std::vector<std::byte>> security_as_of(const metadata& status) noexcept override {
        return as([&] { return behind_->security_as_of(status); });
    }
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override {
        return as([&] { return behind_->set_security(descriptor); });
    }
    [[nodiscard]] result<std::unique_ptr<directory_listing>> list() noexcept override {
        auto listing = as([&] { return behind_->list(); });
        if (not listing) return listing;
        return std::make_unique<impersonated_listing>(who_, std::move(*listing));
    }

private:
    template <class Call>
    std::invoke_result_t<Call> as(Call call) noexcept {
        const as_account now(who_);
        return call();
    }

    // Never suspends. A write that the kernel or another thread ends later would be made as us: no quota
    // would bind it, and a program would keep its set-user-id bit.
    [[nodiscard]] io::task<result<void>> co_write_in_place(io::file_handle& file,
                                                           std::span<const std::byte> from,
                                                           std::uint64_t offset) noexcept {
        const as_account now(who_);
        while (not from.empty()) {
            const auto written = file.write({.buffers = from, .offset = offset});
            if (not written) co_return failure(written.error());
            if (written.bytes_transferred() == 0) co_return failure(error(EIO, "write", file.descriptor()));
            from = from.subspan(written.bytes_transferred());
            offset += written.bytes_transferred();
        }
        co_return result<void>{};
    }

    identities who_;
    node_ptr behind_;
};

result<found_node> seen_by(identities who, result<found_node> found) {
    if (found) found->node = std::make_unique<impersonated_node>(who, std::move(found->node));
    return found;
}

std::vector<gid_t> groups_of_thread() {
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(0, count)));
    return groups;
}

}  // namespace

class impersonated_volume::feed final : public change_feed {
public:
    explicit feed(const impersonated_volume& owner) noexcept : owner_(owner) {}
    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override {
        auto* const own = dynamic_cast<impersonated_node*>(&directory);
        const identities who{.account = owner_.account_, .own_groups = owner_.own_groups_};
        const as_account now(who);
        return owner_.behind_.changes()->watch(own != nullptr ? own->behind() : directory, recursive,
                                               listener);
    }
    [[nodiscard]] io::task<bool> co_changed() noexcept override {
        return owner_.behind_.changes()->co_changed();
    }
    void tell() noexcept override { owner_.behind_.changes()->tell(); }

private:
    const impersonated_volume& owner_;
};

impersonated_volume::impersonated_volume(volume& behind, unix_account account)
    : behind_(behind),
      account_(std::move(account)),
      identity_(behind.identity()),
      own_groups_(groups_of_thread()),
      feed_(std::make_unique<feed>(*this)) {
    acting_user user{.id = account_.user_id, .groups = {account_.group_id}};
    user.groups.insert(user.groups.end(), account_.groups.begin(), account_.groups.end());
    identity_.acts_as = std::move(user);
}

impersonated_volume::~impersonated_volume() = default;

result<std::unique_ptr<impersonated_volume>> impersonated_volume::create(volume& behind,
                                                                         unix_account account) {
    std::unique_ptr<impersonated_volume> made(new impersonated_volume(behind, std::move(account)));
    const bool may = set_groups_of_thread(made->account_.groups) and
                     set_group_of_thread(made->account_.group_id) and
                     set_user_of_thread(made->account_.user_id);
    (void)::setfsuid(::geteuid());
    (void)::setfsgid(::getegid());
    (void)set_groups_of_thread(made->own_groups_);
    if (not may) return failure({EPERM, "impersonate"});
    return made;
}

result<node_ptr> impersonated_volume::find(std::string_view path, follow_links links) noexcept {
    const identities who{.account = account_, .own_groups = own_groups_};
    const as_account now(who);
    auto found = behind_.find(path, links);
    if (not found) return found;
    return std::make_unique<impersonated_node>(who, std::move(*found));
}

result<found_node> impersonated_volume::find_with_status(std::string_view path, follow_links links,
                                                         data_access soon) noexcept {
    const identities who{.account = account_, .own_groups = own_groups_};
    const as_account now(who);
    return seen_by(who, behind_.find_with_status(path, links, soon));
}

result<found_node> impersonated_volume::find_directory(std::string_view path) noexcept {
    const identities who{.account = account_, .own_groups = own_groups_};
    const as_account now(who);
    return seen_by(who, behind_.find_directory(path));
}

result<found_node> impersonated_volume::create_in(node& directory, std::string_view name,
                                                  const creation_request& wanted) noexcept {
    const identities who{.account = account_, .own_groups = own_groups_};
    const as_account now(who);
    auto* const own = dynamic_cast<impersonated_node*>(&directory);
    return seen_by(who, behind_.create_in(own != nullptr ? own->behind() : directory, name, wanted));
}

result<node_ptr> impersonated_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    const identities who{.account = account_, .own_groups = own_groups_};
    const as_account now(who);
    auto made = behind_.create(path, wanted);
    if (not made) return made;
    return std::make_unique<impersonated_node>(who, std::move(*made));
}

change_feed* impersonated_volume::changes() noexcept {
    return behind_.changes() != nullptr ? feed_.get() : nullptr;
}

}  // namespace sluice::vfs
