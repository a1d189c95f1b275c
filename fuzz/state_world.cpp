#include "fuzz/state_world.hpp"

#include <map>
#include <tuple>

#include "sluice/base/case_fold.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/engine/file_system.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::fuzz {

using smb::server::protection;

namespace {

/// A share of a volume that other shares use as well.
class shared_volume final : public vfs::volume {
public:
    shared_volume(std::shared_ptr<vfs::volume> of, bool has_changes) noexcept
        : of_(std::move(of)), has_changes_(has_changes) {}

    [[nodiscard]] const vfs::volume_features& features() const noexcept override { return of_->features(); }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override { return of_->identity(); }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override { return of_->space(); }
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override {
        return of_->find(path, links);
    }
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override {
        return of_->create(path, wanted);
    }
    [[nodiscard]] vfs::change_feed* changes() noexcept override {
        return has_changes_ ? of_->changes() : nullptr;
    }

private:
    std::shared_ptr<vfs::volume> of_;
    bool has_changes_;
};

/// Snapshots of the first two seconds of 1970, which show the files of now: a file that is open in
/// both is one, as with hard links.
class live_snapshots final : public vfs::snapshots {
public:
    explicit live_snapshots(std::shared_ptr<vfs::volume> of) noexcept : of_(std::move(of)) {}

    [[nodiscard]] vfs::fs_domain& domain() noexcept override { return of_->domain(); }
    [[nodiscard]] result<std::vector<vfs::snapshot_time>> list() noexcept override {
        return std::vector{vfs::snapshot_time(std::chrono::seconds(1)), vfs::snapshot_time{}};
    }
    [[nodiscard]] result<std::shared_ptr<vfs::volume>> open(vfs::snapshot_time when) noexcept override {
        if (when.time_since_epoch().count() > 1) return failure({ENOENT, "open snapshot"});
        return std::make_shared<shared_volume>(of_, false);
    }

private:
    std::shared_ptr<vfs::volume> of_;
};

/// A mounted image with its memory.
class image_volume final : public vfs::volume {
public:
    image_volume(io::io_multiplexer& loop, const clock_source& clock, std::vector<std::byte> bytes,
                 std::uint64_t number)
        : device_(std::move(bytes)),
          volume_(loop,
                  fat::file_system::mount(device_, fat::read_geometry(device_).value(), clock,
                                          {.zone = fat::time_zone::utc()})
                      .value(),
                  number) {}

    [[nodiscard]] const vfs::volume_features& features() const noexcept override {
        return volume_.features();
    }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override {
        return volume_.identity();
    }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override { return volume_.space(); }
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override {
        return volume_.find(path, links);
    }
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override {
        return volume_.create(path, wanted);
    }
    void serve_on(std::span<io::io_multiplexer* const> loops) override { volume_.serve_on(loops); }
    [[nodiscard]] vfs::change_feed* changes() noexcept override { return volume_.changes(); }

private:
    fat::memory_device device_;
    fat::volume volume_;
};

const std::vector<std::byte>& empty_image() {
    static const std::vector<std::byte> made = [] {
        constexpr std::size_t image_bytes = 160 << 10;
        fat::memory_device device(image_bytes);
        const auto plan = fat::plan_format(image_bytes, {}).value();
        ENSURE(fat::format(device, plan).has_value());
        return std::vector<std::byte>(device.bytes().begin(), device.bytes().end());
    }();
    return made;
}

constexpr bool has_bit(unsigned bits, unsigned number) noexcept {
    return ((bits >> number) & 1U) != 0;
}

}  // namespace

std::optional<smb::auth::account> accounts::find(std::string_view user, std::string_view domain) noexcept {
    auto found = users_.find(user, domain);
    if (found) found->is_guest = equal_ignoring_case(user, "g");
    return found;
}

void accounts::admit(unsigned set) {
    std::vector<smb::server::user_database::admission> only{{.name = "nobody_else", .password = "p"}};
    for (unsigned i = 0; i != world::users; ++i)
        if (has_bit(set, i)) only.push_back({.name = std::string(1, "uvg"[i]), .password = "p"});
    ENSURE(users_.admit(only).has_value());
}

circumstances::circumstances(unsigned bits) noexcept
    : requires_signing(has_bit(bits, 0)),
      requires_encryption((bits & 6U) == 6U),
      allows_guests(has_bit(bits, 3)),
      expires_sessions(has_bit(bits, 4)),
      has_image(has_bit(bits, 5)),
      has_short_transfers(has_bit(bits, 6)),
      has_slow_disk(has_bit(bits, 7)),
      stops_early(has_bit(bits, 8)) {}

world::world(const circumstances& how)
    : how_(how),
      loop_(
          io::make_simulated_multiplexer({.seed = 1, .short_transfers = how.has_short_transfers ? 500U : 0U})
              .value()) {
    vfs::memory_volume_options options;
    options.capacity_bytes = 4U << 20;
    if (how.has_slow_disk) options.faults.delay_max = std::chrono::milliseconds(1);
    memory_ = std::make_shared<vfs::memory_volume>(*loop_, clock(), options);
    accounts_.admit(~0U);
    smb::server::server_configuration configuration;
    configuration.signing = how.requires_signing ? protection::required : protection::offered;
    configuration.encryption = how.requires_encryption ? protection::required : protection::offered;
    configuration.allows_guests = how.allows_guests;
    configuration.compresses = true;
    if (how.expires_sessions) configuration.session_lifetime = std::chrono::hours(1);
    configuration.shares = shares(~0U, 0);
    server_ = std::make_unique<smb::server::smb_server>(
        smb::server::server_dependencies{
            .loop = *loop_, .clock = clock(), .random = secrets_, .accounts = accounts_, .log = log_},
        std::move(configuration));
    ENSURE(server_->start({}).has_value());
}

world::~world() = default;

std::unique_ptr<vfs::volume> world::image() {
    return std::make_unique<image_volume>(*loop_, clock(), empty_image(), ++images_mounted_);
}

std::vector<smb::server::share_configuration> world::shares(unsigned stays, unsigned changes) {
    std::vector<smb::server::share_configuration> all;
    constexpr std::array names{"files", "again", "fixed", "sealed", "ours", "image"};
    const unsigned count = how_.has_image ? names.size() : names.size() - 1;
    for (unsigned i = 0; i != count; ++i) {
        if (not has_bit(stays, i)) continue;
        smb::server::share_configuration& one = all.emplace_back();
        one.name = names[i];
        one.source = i == 5 ? "image" : "memory";
        if (has_bit(changes, i)) one.comment = "changed";
        one.is_read_only = i == 2;
        one.encryption = i == 3 ? protection::required : protection::offered;
        one.guests = i == 1 ? smb::server::guest_access::read : smb::server::guest_access::write;
        if (i == 4) one.users = {"v"};
        if (i == 5) {
            one.volume = image();
            continue;
        }
        // There is one feed: a second reader would receive the changes that the first waits for.
        one.volume = std::make_unique<shared_volume>(memory_, not std::exchange(has_shared_feed_, true));
        if (i == 0) one.snapshots = std::make_shared<live_snapshots>(memory_);
    }
    return all;
}

int world::connect() {
    auto pair = io::socket_handle::pair();
    if (not pair) return -1;
    if (not pair->first.set_multiplexer(loop_.get())) return -1;
    server_->adopt(std::move(pair->first), io::socket_address::loopback_v4(1));
    return pair->second.release().descriptor;
}

void world::settle() {
    constexpr std::chrono::microseconds moment{100};
    while (loop_->try_run_for(moment).value_or(0) > 0) {}
}

void world::pass(std::chrono::milliseconds time) {
    constexpr unsigned events_max = 100'000;
    unsigned events = 0;
    const auto until = clock().steady_now() + time;
    while (clock().steady_now() < until) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock().steady_now());
        if (loop_->try_run_for(left).value_or(0) <= 0) break;
        ENSURE(++events < events_max, "the server is busy without a client");
    }
    if (clock().steady_now() < until) clock().advance_to(until);
}

void world::finish() {
    constexpr unsigned events_max = 1'000'000;
    unsigned events = 0;
    while (loop_->run().value_or(0) > 0)
        ENSURE(++events < events_max, "the server never comes to rest");
}

void world::reload(unsigned stays, unsigned changes) {
    server_->replace_shares(shares(stays, changes));
}

void world::admit(unsigned set) {
    accounts_.admit(set);
    (void)server_->end_sessions_of_removed_users();
}

void world::set_faults(unsigned choice) {
    vfs::memory_faults faults{.seed = choice};
    if (has_bit(choice, 0)) faults.read_fails = 300;
    if (has_bit(choice, 1)) faults.write_fails = 300;
    if (has_bit(choice, 2)) faults.create_fails = 300;
    if (how_.has_slow_disk) faults.delay_max = std::chrono::milliseconds(1);
    memory_->set_faults(faults);
}

io::task<void> world::end(smb::server::smb_server& server, bool& is_done) {
    io::task<void> ending = server.done();
    co_await std::move(ending);
    is_done = true;
}

void world::stop() {
    server_->stop();
    bool is_done = false;
    io::task_group ending(*loop_);
    ending.spawn(end(*server_, is_done));
    finish();
    ENSURE(is_done, "the server does not stop");
    const auto left = server_->gauges();
    ENSURE(left.connections == 0, "a connection outlives the server");
    ENSURE(left.sessions == 0, "a session outlives the server");
    ENSURE(left.opens == 0, "an open outlives the server");
    ENSURE(left.files == 0, "a file stays locked or shared");
    ENSURE(left.buffers == 0, "a buffer is not released");
}

// Locks of one file: an exclusive one overlaps no other, for all opens through all shares. The
// image is not checked, because a reload mounts it again, with other files of the same names.
void world::check() const {
    struct range {
        smb::server::locked_range locked;
        std::uint64_t open;
    };
    std::map<std::pair<std::string, std::string>, std::vector<range>> locks;
    const auto numbers = server_->snapshot({.has_totals = true}).open_numbers;
    const auto found = server_->snapshot({.has_names = true, .opens = numbers});
    for (const auto& one : found.opens) {
        if (one.share == "image") continue;
        for (const auto& locked : one.first_locks)
            locks[{fold(one.path), fold(one.stream)}].push_back({locked, one.number});
    }
    const auto overlap = [](const smb::server::locked_range& a, const smb::server::locked_range& b) {
        if (a.length == 0 or b.length == 0) return false;
        return a.offset <= b.offset ? b.offset - a.offset < a.length : a.offset - b.offset < b.length;
    };
    for (const auto& [file, ranges] : locks)
        for (std::size_t i = 0; i != ranges.size(); ++i)
            for (std::size_t k = 0; k != i; ++k) {
                const auto& [a, b] = std::tie(ranges[i], ranges[k]);
                const bool is_exclusive = a.locked.is_exclusive or b.locked.is_exclusive;
                ENSURE(a.open == b.open or not is_exclusive or not overlap(a.locked, b.locked),
                       "two opens hold overlapping locks, one of them exclusive");
            }
}

}  // namespace sluice::fuzz
