#include "sluice/vfs/impersonated_volume.hpp"

#include "sluice/vfs/domain/fs_domain.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::vfs {
namespace {

using as_account = account_identity::use;

class impersonated_listing final : public directory_listing {
public:
    impersonated_listing(account_ptr who, std::unique_ptr<directory_listing> underlying)
        : who_(std::move(who)), underlying_(std::move(underlying)) {}
    [[nodiscard]] result<const listed_name*> next() noexcept override {
        const as_account now(*who_);
        return underlying_->next();
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        const as_account now(*who_);
        return underlying_->security();
    }
    [[nodiscard]] short_name alternate_name() noexcept override {
        const as_account now(*who_);
        return underlying_->alternate_name();
    }

private:
    account_ptr who_;
    std::unique_ptr<directory_listing> underlying_;
};

class impersonated_node final : public node,
                                public node_data,
                                public node_names,
                                public node_attached,
                                public node_children {
public:
    impersonated_node(account_ptr who, node_ptr underlying)
        : node(underlying->domain()), who_(std::move(who)), underlying_(std::move(underlying)) {}

    [[nodiscard]] node& underlying() noexcept { return *underlying_; }

    // Information that is already known or open needs no rights.
    [[nodiscard]] node_kind kind() const noexcept override { return underlying_->kind(); }
    [[nodiscard]] file_key key() const noexcept override { return underlying_->key(); }
    [[nodiscard]] std::string path() const override { return underlying_->path(); }
    [[nodiscard]] std::string location() const override { return underlying_->location(); }
    [[nodiscard]] std::string stream_name() const override { return underlying_->stream_name(); }
    // Has the same parts as the underlying node.
    [[nodiscard]] node_data* data() noexcept override { return if_has(underlying_->data()); }
    [[nodiscard]] node_names* names() noexcept override { return this; }
    [[nodiscard]] node_attached* attached() noexcept override { return if_has(underlying_->attached()); }
    [[nodiscard]] node_children* children() noexcept override { return if_has(underlying_->children()); }

    [[nodiscard]] bool transfers_at_once() const noexcept override {
        return underlying_->data()->transfers_at_once();
    }
    void keep_access_time(bool keeps) noexcept override { underlying_->data()->keep_access_time(keeps); }
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override {
        return underlying_->data()->co_read(into, offset, by);
    }
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override {
        node_data& data = *underlying_->data();
        io::file_handle* const file = data.host_file();
        if (file == nullptr and not data.is_written_here()) return data.co_write(from, offset, by);
        return co_write_as_account(file, from, offset, by);
    }
    [[nodiscard]] result<void> write_here(std::span<const std::byte> from,
                                          std::uint64_t offset) noexcept override {
        return as([&] { return underlying_->data()->write_here(from, offset); });
    }
    [[nodiscard]] bool is_written_here() const noexcept override {
        return underlying_->data()->is_written_here();
    }
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override {
        return underlying_->co_flush(by);
    }
    [[nodiscard]] io::file_handle* host_file() noexcept override { return underlying_->data()->host_file(); }
    [[nodiscard]] bool pins_extents() noexcept override { return underlying_->data()->pins_extents(); }
    [[nodiscard]] result<host_runs> pin_extents(io::extent_pair range,
                                                std::size_t runs_max) noexcept override {
        return underlying_->data()->pin_extents(range, runs_max);
    }

    [[nodiscard]] result<metadata> status() noexcept override {
        return as([&] { return underlying_->status(); });
    }
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override {
        return as([&] { return underlying_->change(wanted); });
    }
    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override {
        return as([&] { return underlying_->data()->open_data(wanted); });
    }
    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override {
        return as([&] { return underlying_->data()->truncate(size_bytes); });
    }
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override {
        return as([&] { return underlying_->data()->allocate(size_bytes); });
    }
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool frees_blocks) noexcept override {
        return as([&] { return underlying_->data()->zero(offset, length, frees_blocks); });
    }
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override {
        return as([&] { return underlying_->data()->allocated_ranges(offset, length, storage); });
    }
    [[nodiscard]] result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override {
        auto* const other = dynamic_cast<impersonated_node*>(&destination);
        node& to = other != nullptr ? *other->underlying_ : destination;
        return as([&] { return underlying_->data()->clone_to(to, source, destination_offset, only_shared); });
    }
    [[nodiscard]] result<void> rename(std::string_view path, when_taken taken) noexcept override {
        return as([&] { return underlying_->names()->rename(path, taken); });
    }
    void follow_stream_name(std::string_view name) noexcept override {
        underlying_->names()->follow_stream_name(name);
    }
    [[nodiscard]] result<void> link(std::string_view path, when_taken taken) noexcept override {
        return as([&] { return underlying_->names()->link(path, taken); });
    }
    // The server wants to know; the account need not be able to search the directory.
    [[nodiscard]] result<name_place> place() noexcept override { return underlying_->names()->place(); }
    [[nodiscard]] result<name_identity> identity_of(std::string_view name) noexcept override {
        return underlying_->children()->identity_of(name);
    }
    [[nodiscard]] result<void> recycle() noexcept override {
        return as([&] { return underlying_->names()->recycle(); });
    }
    // The server wants to know this, too.
    [[nodiscard]] bool has_lost_name() noexcept override { return underlying_->names()->has_lost_name(); }
    [[nodiscard]] result<void> remove() noexcept override {
        return as([&] { return underlying_->names()->remove(); });
    }
    [[nodiscard]] result<short_name> alternate_name() noexcept override {
        return as([&] { return underlying_->names()->alternate_name(); });
    }
    [[nodiscard]] result<void> set_alternate_name(const short_name& name) noexcept override {
        return as([&] { return underlying_->names()->set_alternate_name(name); });
    }
    [[nodiscard]] result<std::string> read_link() noexcept override {
        return as([&] { return underlying_->attached()->read_link(); });
    }
    [[nodiscard]] result<void> become_link(std::string_view target) noexcept override {
        return as([&] { return underlying_->attached()->become_link(target); });
    }
    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override {
        return as([&] { return underlying_->attached()->streams(); });
    }
    [[nodiscard]] result<metadata> file_status() noexcept override {
        return as([&] { return underlying_->attached()->file_status(); });
    }
    [[nodiscard]] result<node_ptr> open_stream(const stream_request& wanted) noexcept override {
        auto opened = as([&] { return underlying_->attached()->open_stream(wanted); });
        if (not opened) return opened;
        return std::make_unique<impersonated_node>(who_, std::move(*opened));
    }
    [[nodiscard]] bool streams_may_wait() noexcept override {
        return as([&] { return underlying_->attached()->streams_may_wait(); });
    }
    [[nodiscard]] result<void> remove_streams() noexcept override {
        return as([&] { return underlying_->attached()->remove_streams(); });
    }
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override {
        return as([&] { return underlying_->attached()->extended_attributes(); });
    }
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override {
        return as([&] { return underlying_->attached()->set_extended_attribute(name, value); });
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        return as([&] { return underlying_->attached()->security(); });
    }
    [[nodiscard]] result<std::vector<std::byte>> security_as_of(const metadata& status) noexcept override {
        return as([&] { return underlying_->attached()->security_as_of(status); });
    }
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override {
        return as([&] { return underlying_->attached()->set_security(descriptor); });
    }
    [[nodiscard]] result<std::unique_ptr<directory_listing>> list() noexcept override {
        auto listing = as([&] { return underlying_->children()->list(); });
        if (not listing) return listing;
        return std::make_unique<impersonated_listing>(who_, std::move(*listing));
    }

private:
    template <class Part>
    [[nodiscard]] Part* if_has(const Part* underlying) noexcept {
        return underlying != nullptr ? static_cast<Part*>(this) : nullptr;
    }

    template <class Call>
    std::invoke_result_t<Call> as(Call call) noexcept {
        const as_account now(*who_);
        return call();
    }

    // Writes with a plain call on one thread, to `file` or, if it is null, to the node. A write
    // that the kernel or another thread completes would have the server's identity: it would bypass
    // the quota, and a program would keep its set-user-id bit.
    [[nodiscard]] io::task<result<void>> co_write_as_account(io::file_handle* file,
                                                             std::span<const std::byte> from,
                                                             std::uint64_t offset,
                                                             io::call_cancellation* by) noexcept {
        io::io_multiplexer* const loop = io::io_multiplexer::running_here();
        // A small stream may grow out of its attribute, and wait for a device.
        const bool may_wait = file == nullptr and not transfers_at_once();
        if ((domain().is_inline() and not may_wait) or loop == nullptr) {
            const fs_domain::inline_call now(domain());
            co_return write_to(file, from, offset);
        }
        co_return co_await domain().offload(*loop, by, [&] { return write_to(file, from, offset); });
    }

    [[nodiscard]] result<void> write_to(io::file_handle* to, std::span<const std::byte> from,
                                        std::uint64_t offset) noexcept {
        if (to == nullptr) return write_here(from, offset);
        io::file_handle& file = *to;
        const as_account now(*who_);
        while (not from.empty()) {
            const auto written = file.write({.buffers = from, .offset = offset});
            if (not written) return failure(written.error());
            if (written.bytes_transferred() == 0) return failure(error(EIO, "write", file.descriptor()));
            from = from.subspan(written.bytes_transferred());
            offset += written.bytes_transferred();
        }
        return {};
    }

    account_ptr who_;
    node_ptr underlying_;
};

result<found_node> seen_by(const account_ptr& who, result<found_node> found) {
    if (found) found->node = std::make_unique<impersonated_node>(who, std::move(found->node));
    return found;
}

result<node_ptr> seen_by(const account_ptr& who, result<node_ptr> found) {
    if (not found) return found;
    return std::make_unique<impersonated_node>(who, *std::move(found));
}

node& underlying(node& shown) noexcept {
    auto* const own = dynamic_cast<impersonated_node*>(&shown);
    return own != nullptr ? own->underlying() : shown;
}

}  // namespace

class impersonated_volume::feed final : public change_feed {
public:
    explicit feed(const impersonated_volume& owner) noexcept : owner_(owner) {}
    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override {
        return owner_.underlying_.changes()->watch_as(owner_.account_, underlying(directory), recursive,
                                                      listener);
    }
    [[nodiscard]] bool reports_all_changes(node& directory) noexcept override {
        return owner_.underlying_.changes()->reports_all_changes(underlying(directory));
    }
    [[nodiscard]] io::task<bool> co_changed() noexcept override {
        return owner_.underlying_.changes()->co_changed();
    }
    void deliver() noexcept override { owner_.underlying_.changes()->deliver(); }

private:
    const impersonated_volume& owner_;
};

impersonated_volume::impersonated_volume(volume& underlying, account_ptr account)
    : volume(underlying.domain().shared_from_this()),
      underlying_(underlying),
      account_(std::move(account)),
      identity_(underlying.identity()),
      feed_(std::make_unique<feed>(*this)) {
    const unix_account& acts_as = account_->account();
    acting_user user{.id = acts_as.user_id, .groups = {acts_as.group_id}};
    user.groups.insert(user.groups.end(), acts_as.groups.begin(), acts_as.groups.end());
    identity_.acts_as = std::move(user);
}

impersonated_volume::~impersonated_volume() = default;

result<std::unique_ptr<impersonated_volume>> impersonated_volume::create(volume& underlying,
                                                                         unix_account account) {
    auto identity = account_identity::create(std::move(account));
    if (not identity) return failure(identity.error());
    return std::unique_ptr<impersonated_volume>(new impersonated_volume(underlying, *std::move(identity)));
}

std::unique_ptr<impersonated_volume> impersonated_volume::same_account_on(volume& other) const {
    return std::unique_ptr<impersonated_volume>(new impersonated_volume(other, account_));
}

result<node_ptr> impersonated_volume::find(std::string_view path, follow_links links) noexcept {
    const as_account now(*account_);
    return seen_by(account_, underlying_.find(path, links));
}

result<found_node> impersonated_volume::find_with_status(std::string_view path, follow_links links,
                                                         data_access soon, name_match match) noexcept {
    const as_account now(*account_);
    return seen_by(account_, underlying_.find_with_status(path, links, soon, match));
}

result<found_node> impersonated_volume::find_directory(std::string_view path) noexcept {
    const as_account now(*account_);
    return seen_by(account_, underlying_.find_directory(path));
}

result<found_node> impersonated_volume::create_in(node& directory, std::string_view name,
                                                  const creation_request& wanted) noexcept {
    const as_account now(*account_);
    return seen_by(account_, underlying_.create_in(underlying(directory), name, wanted));
}

result<node_ptr> impersonated_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    const as_account now(*account_);
    return seen_by(account_, underlying_.create(path, wanted));
}

change_feed* impersonated_volume::changes() noexcept {
    return underlying_.changes() != nullptr ? feed_.get() : nullptr;
}

}  // namespace sluice::vfs
