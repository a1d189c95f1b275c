#include "tests/smb_simulation/world/slow_volume.hpp"

#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "tests/smb_simulation/world/loop_scheduler.hpp"

namespace sluice::smb_simulation {

namespace {

constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

}  // namespace

std::chrono::milliseconds slow_calls::draw() noexcept {
    if (random_.below(1000) >= how_.chance) return {};
    if (random_.below(1000) < how_.hung) return how_.is_hang_over == nullptr ? how_.hung_for : forever;
    return std::chrono::milliseconds(random_.below(static_cast<std::uint64_t>(how_.longest.count()) + 1));
}

void slow_calls::block() noexcept {
    if (not loop_scheduler::may_block_here()) {
        if (how_.on_inline_call) how_.on_inline_call();
        return;
    }
    const std::chrono::milliseconds taken = draw();
    if (taken == forever)
        loop_scheduler::block_here_until(how_.is_hang_over);
    else
        loop_scheduler::block_here(taken);
}

io::task<void> slow_calls::suspend(io::io_multiplexer& loop) noexcept {
    const std::chrono::milliseconds drawn = draw();
    const std::chrono::milliseconds taken = drawn == forever ? how_.hung_for : drawn;
    if (taken == std::chrono::milliseconds{}) co_return;
    const deadline until(taken);
    (void)co_await io::co_sleep(loop, until);
}

io::task<result<void>> slow_calls::transfer(vfs::fs_domain& domain, io::call_cancellation* by) noexcept {
    io::io_multiplexer* const loop = io::io_multiplexer::running_here();
    if (loop == nullptr) co_return result<void>();
    if (domain.is_inline()) {
        io::task<void> waiting = suspend(*loop);
        co_await std::move(waiting);
        co_return result<void>();
    }
    co_return co_await domain.offload(*loop, by, [this] {
        block();
        return result<void>();
    });
}

namespace {

using namespace vfs;  // NOLINT: a node forwards all of it

class slow_node final : public node,
                        public node_data,
                        public node_names,
                        public node_attached,
                        public node_children {
public:
    slow_node(node_ptr inner, slow_calls& slowness) noexcept
        : node(inner->domain()), inner_(std::move(inner)), slowness_(slowness) {}

    [[nodiscard]] node& inner() noexcept { return *inner_; }

    [[nodiscard]] node_kind kind() const noexcept override { return inner_->kind(); }
    [[nodiscard]] file_key key() const noexcept override { return inner_->key(); }
    [[nodiscard]] std::string path() const override { return inner_->path(); }
    [[nodiscard]] std::string location() const override { return inner_->location(); }
    [[nodiscard]] std::string stream_name() const override { return inner_->stream_name(); }

    [[nodiscard]] result<metadata> status() noexcept override { return slowly().status(); }
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override {
        return slowly().change(wanted);
    }

    // Supports the interfaces that the inner node supports.
    [[nodiscard]] node_data* data() noexcept override { return if_has(inner_->data()); }
    [[nodiscard]] node_names* names() noexcept override { return if_has(inner_->names()); }
    [[nodiscard]] node_attached* attached() noexcept override { return if_has(inner_->attached()); }
    [[nodiscard]] node_children* children() noexcept override { return if_has(inner_->children()); }

    [[nodiscard]] bool transfers_at_once() const noexcept override { return true; }
    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override {
        return slowly().data()->open_data(wanted);
    }
    void keep_access_time(bool keeps) noexcept override { inner_->data()->keep_access_time(keeps); }
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override {
        io::task<result<void>> waiting = slowness_.transfer(domain(), by);
        const auto waited = co_await std::move(waiting);
        if (not waited) co_return failure(waited.error());
        io::task<result<std::size_t>> reading = inner_->data()->co_read(into, offset, by);
        const auto outcome = co_await std::move(reading);
        io::task<result<void>> returning = slowness_.transfer(domain(), nullptr);
        (void)co_await std::move(returning);
        co_return outcome;
    }
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override {
        io::task<result<void>> waiting = slowness_.transfer(domain(), by);
        const auto waited = co_await std::move(waiting);
        if (not waited) co_return failure(waited.error());
        io::task<result<void>> writing = inner_->data()->co_write(from, offset, by);
        const auto outcome = co_await std::move(writing);
        io::task<result<void>> returning = slowness_.transfer(domain(), nullptr);
        (void)co_await std::move(returning);
        co_return outcome;
    }
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override {
        io::task<result<void>> waiting = slowness_.transfer(domain(), by);
        const auto waited = co_await std::move(waiting);
        if (not waited) co_return failure(waited.error());
        io::task<result<void>> flushing = inner_->co_flush(by);
        co_return co_await std::move(flushing);
    }

    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override {
        return slowly().data()->truncate(size_bytes);
    }
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override {
        return slowly().data()->allocate(size_bytes);
    }
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool frees_blocks) noexcept override {
        return slowly().data()->zero(offset, length, frees_blocks);
    }
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override {
        return slowly().data()->allocated_ranges(offset, length, storage);
    }
    [[nodiscard]] result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override {
        return slowly().data()->clone_to(static_cast<slow_node&>(destination).inner(), source,
                                         destination_offset, only_shared);
    }

    [[nodiscard]] result<void> rename(std::string_view path, when_taken taken) noexcept override {
        return slowly().names()->rename(path, taken);
    }
    void follow_stream_name(std::string_view name) noexcept override {
        inner_->names()->follow_stream_name(name);
    }
    [[nodiscard]] result<void> link(std::string_view path, when_taken taken) noexcept override {
        return slowly().names()->link(path, taken);
    }
    [[nodiscard]] result<name_place> place() noexcept override { return slowly().names()->place(); }
    [[nodiscard]] result<name_identity> identity_of(std::string_view name) noexcept override {
        return slowly().children()->identity_of(name);
    }
    [[nodiscard]] result<void> remove() noexcept override { return slowly().names()->remove(); }
    [[nodiscard]] result<short_name> alternate_name() noexcept override {
        return slowly().names()->alternate_name();
    }
    [[nodiscard]] result<void> set_alternate_name(const short_name& name) noexcept override {
        return slowly().names()->set_alternate_name(name);
    }
    [[nodiscard]] result<std::string> read_link() noexcept override {
        return slowly().attached()->read_link();
    }
    [[nodiscard]] result<void> become_link(std::string_view target) noexcept override {
        return slowly().attached()->become_link(target);
    }

    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override {
        return slowly().attached()->streams();
    }
    [[nodiscard]] result<node_ptr> open_stream(const stream_request& wanted) noexcept override {
        auto opened = slowly().attached()->open_stream(wanted);
        if (not opened) return opened;
        return std::make_unique<slow_node>(*std::move(opened), slowness_);
    }
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override {
        return slowly().attached()->extended_attributes();
    }
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override {
        return slowly().attached()->set_extended_attribute(name, value);
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        return slowly().attached()->security();
    }
    [[nodiscard]] result<std::vector<std::byte>> security_as_of(const metadata& status) noexcept override {
        return slowly().attached()->security_as_of(status);
    }
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override {
        return slowly().attached()->set_security(descriptor);
    }
    [[nodiscard]] result<std::unique_ptr<directory_listing>> list() noexcept override {
        return slowly().children()->list();
    }

private:
    template <class Part>
    [[nodiscard]] Part* if_has(const Part* inner) noexcept {
        return inner != nullptr ? static_cast<Part*>(this) : nullptr;
    }
    [[nodiscard]] node& slowly() noexcept {
        slowness_.block();
        return *inner_;
    }

    node_ptr inner_;
    slow_calls& slowness_;
};

[[nodiscard]] result<node_ptr> wrapped(result<node_ptr> found, slow_calls& slowness) noexcept {
    if (not found) return found;
    return std::make_unique<slow_node>(*std::move(found), slowness);
}

[[nodiscard]] result<found_node> wrapped(result<found_node> found, slow_calls& slowness) noexcept {
    if (not found) return found;
    found->node = std::make_unique<slow_node>(std::move(found->node), slowness);
    return found;
}

}  // namespace

class slow_volume::slow_feed final : public change_feed {
public:
    slow_feed(change_feed& inner, slow_calls& slowness) noexcept : inner_(inner), slowness_(slowness) {}

    [[nodiscard]] result<std::unique_ptr<change_watch>> watch(node& directory, bool recursive,
                                                              change_listener& listener) noexcept override {
        slowness_.block();
        return inner_.watch(static_cast<slow_node&>(directory).inner(), recursive, listener);
    }
    [[nodiscard]] bool reports_all_changes(node& directory) noexcept override {
        slowness_.block();
        return inner_.reports_all_changes(static_cast<slow_node&>(directory).inner());
    }
    [[nodiscard]] io::task<bool> co_changed() noexcept override { return inner_.co_changed(); }
    void deliver() noexcept override {
        slowness_.block();
        inner_.deliver();
    }

private:
    change_feed& inner_;
    slow_calls& slowness_;
};

slow_volume::slow_volume(std::unique_ptr<vfs::volume> inner, std::uint64_t seed,
                         const slow_calls_options& how)
    : inner_(std::move(inner)), slowness_(seed, how) {}

slow_volume::~slow_volume() = default;

change_feed* slow_volume::changes() noexcept {
    change_feed* const inner = inner_->changes();
    if (inner != nullptr and feed_ == nullptr) feed_ = std::make_unique<slow_feed>(*inner, slowness_);
    return inner == nullptr ? nullptr : feed_.get();
}

result<vfs::volume_space> slow_volume::space() noexcept {
    slowness_.block();
    return inner_->space();
}

result<node_ptr> slow_volume::find(std::string_view path, follow_links links) noexcept {
    slowness_.block();
    return wrapped(inner_->find(path, links), slowness_);
}

result<found_node> slow_volume::find_with_status(std::string_view path, follow_links links, data_access soon,
                                                 name_match match) noexcept {
    slowness_.block();
    return wrapped(inner_->find_with_status(path, links, soon, match), slowness_);
}

result<found_node> slow_volume::find_directory(std::string_view path) noexcept {
    slowness_.block();
    return wrapped(inner_->find_directory(path), slowness_);
}

result<node_ptr> slow_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    slowness_.block();
    return wrapped(inner_->create(path, wanted), slowness_);
}

result<found_node> slow_volume::create_in(node& directory, std::string_view name,
                                          const creation_request& wanted) noexcept {
    slowness_.block();
    return wrapped(inner_->create_in(static_cast<slow_node&>(directory).inner(), name, wanted), slowness_);
}

}  // namespace sluice::smb_simulation
