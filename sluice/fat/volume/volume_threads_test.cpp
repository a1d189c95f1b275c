#include "sluice/fat/volume/volume.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/journal_device.hpp"
#include "sluice/fat/device/overlay_device.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/node_data.hpp"

// Calls that wait for an image do not make a loop wait.

namespace sluice::fat {
namespace {

using namespace std::chrono_literals;

// A gate that blocks calls like a slow disk. After some seconds it opens by itself and records
// that, so that a test fails instead of hanging if the loop that should open the gate waits for it.
class gate {
public:
    void shut() {
        const std::scoped_lock guard(mutex_);
        is_shut_ = true;
        visitors_ = 0;
    }
    void open() {
        const std::scoped_lock guard(mutex_);
        is_shut_ = false;
        changed_.notify_all();
    }
    void pass() {
        std::unique_lock guard(mutex_);
        if (not is_shut_) return;
        ++visitors_;
        changed_.notify_all();
        if (changed_.wait_for(guard, 3s, [&] { return not is_shut_; })) return;
        has_given_up_ = true;
        is_shut_ = false;
    }
    [[nodiscard]] bool is_visited_within(std::chrono::milliseconds limit) {
        std::unique_lock guard(mutex_);
        return changed_.wait_for(guard, limit, [&] { return visitors_ != 0; });
    }
    [[nodiscard]] bool has_given_up() {
        const std::scoped_lock guard(mutex_);
        return has_given_up_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_shut_ = false;
    bool has_given_up_ = false;
    int visitors_ = 0;
};

struct gates {
    gate reads;
    gate writes;
    gate barriers;
};

// A device whose data is never available without waiting, unless it `is_warm`.
class slow_device final : public device {
public:
    slow_device(device& below, gates& past) noexcept : below_(below), past_(past) {}

    std::atomic<bool> is_warm = false;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        past_.reads.pass();
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset,
                                           std::span<std::byte> into) noexcept override {
        return is_warm ? below_.try_read_at(offset, into) : false;
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        past_.writes.pass();
        return below_.write_at(offset, pieces);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        past_.barriers.pass();
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        return below_.punch_hole(range);
    }
    [[nodiscard]] std::optional<file_location> location_of(std::uint64_t offset) noexcept override {
        return below_.location_of(offset);
    }
    using device::read_at;
    using device::write_at;

private:
    device& below_;
    gates& past_;
};

const std::string content(50'000, 'c');
const std::string more("more");

// A file in an image, served directly, with a journal, or through an overlay.
class served_image : public testing::TestWithParam<const char*> {
protected:
    served_image() : image_(formatted(4096, "-F 12")), slow_image_(image_, past_) {
        {
            const auto fs = mount(image_);
            put(*fs, "file", content);
        }
        const std::string kind = GetParam();
        device* on = &slow_image_;
        if (kind == "journal") on = &with_journal();
        if (kind == "overlay") on = &with_overlay();
        volume_.emplace(*loop_, mount(*on), 1, &threads_);
        file_ = volume_->find("file", vfs::follow_links::yes).value();
        EXPECT_TRUE(file_->data()->open_data({.read = true, .write = true}));
    }
    ~served_image() override {
        EXPECT_FALSE(past_.reads.has_given_up() or past_.writes.has_given_up() or
                     past_.barriers.has_given_up())
            << "the loop waited";
        file_.reset();
        volume_.reset();
    }

    [[nodiscard]] std::unique_ptr<file_system> mount(device& on) {
        return file_system::mount(on, read_geometry(on).value(), clock_, {.zone = time_zone::utc()}).value();
    }
    device& with_journal() {
        const journal_device::place where{.in_image = {.offset = 0, .length = image_.size_bytes()}};
        EXPECT_TRUE(journal_device::format(slow_image_, *slow_side_, where, true, {}));
        journal_ = journal_device::open(slow_image_, *slow_side_, where, false).value();
        return *journal_;
    }
    device& with_overlay() {
        EXPECT_TRUE(overlay_device::format(slow_image_, *slow_side_, 0, {}));
        overlay_ = overlay_device::open(slow_image_, *slow_side_, side_.size_bytes()).value();
        return *overlay_;
    }

    // Runs the loop until the spawned operations have ended.
    void finish() {
        while (begun_.size() != 0)
            (void)loop_->run();
    }
    static io::task<void> read(vfs::node& from, std::string& into, bool& done) {
        const auto got = co_await from.data()->co_read(std::as_writable_bytes(std::span(into)), 0);
        done = got and * got == into.size();
    }
    static io::task<void> write(vfs::node& to, const std::string& what, std::uint64_t offset, bool& done) {
        done = (co_await to.data()->co_write(std::as_bytes(std::span(what)), offset)).has_value();
    }
    static io::task<void> flush(vfs::node& of, bool& done) { done = (co_await of.co_flush()).has_value(); }

    simulated_clock clock_;
    gates past_;
    memory_device image_;
    slow_device slow_image_;
    memory_device side_{8U << 20};
    std::optional<slow_device> slow_side_{std::in_place, side_, past_};
    std::unique_ptr<journal_device> journal_;
    std::unique_ptr<overlay_device> overlay_;
    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
    io::call_threads threads_{2};
    std::optional<volume> volume_;
    vfs::node_ptr file_;
    io::task_group begun_{*loop_};
};
INSTANTIATE_TEST_SUITE_P(plainly, served_image, testing::Values("plain"));
INSTANTIATE_TEST_SUITE_P(aside, served_image, testing::Values("journal", "overlay"));

TEST_P(served_image, never_makes_the_loop_wait_for_a_read) {
    std::string found(content.size(), '?');
    bool is_read = false;
    past_.reads.shut();
    begun_.spawn(read(*file_, found, is_read));
    ASSERT_TRUE(past_.reads.is_visited_within(10s));
    EXPECT_FALSE(is_read);
    past_.reads.open();
    finish();
    EXPECT_TRUE(is_read);
    EXPECT_EQ(found, content);
}

TEST_P(served_image, reads_cached_data_without_a_thread) {
    std::string found(content.size(), '?');
    bool is_read = false;
    begun_.spawn(read(*file_, found, is_read));
    finish();  // the location of the file is known from here on
    ASSERT_TRUE(is_read);
    slow_image_.is_warm = slow_side_->is_warm = true;
    past_.reads.shut();
    is_read = false;
    found.assign(content.size(), '?');
    begun_.spawn(read(*file_, found, is_read));
    EXPECT_TRUE(is_read);
    EXPECT_EQ(found, content);
    past_.reads.open();
}

TEST_P(served_image, never_makes_the_loop_wait_for_a_write_and_reads_concurrently) {
    bool is_written = false;
    bool is_read = false;
    std::string found(1000, '?');
    begun_.spawn(read(*file_, found, is_read));
    finish();
    past_.writes.shut();
    const std::string what(10'000, 'w');
    begun_.spawn(write(*file_, what, 20'000, is_written));
    ASSERT_TRUE(past_.writes.is_visited_within(10s));
    EXPECT_FALSE(is_written);
    if (journal_ == nullptr) {  // with a journal, a read waits for the write, but on a thread
        is_read = false;
        begun_.spawn(read(*file_, found, is_read));
        while (not is_read)
            (void)loop_->run();
        EXPECT_FALSE(is_written);
    }
    past_.writes.open();
    finish();
    EXPECT_TRUE(is_written);
    found.resize(content.size());
    begun_.spawn(read(*file_, found, is_read));
    finish();
    EXPECT_EQ(found, content.substr(0, 20'000) + what + content.substr(30'000));
}

TEST_P(served_image, never_makes_the_loop_wait_for_a_flush) {
    bool is_written = false;
    bool is_flushed = false;
    begun_.spawn(write(*file_, more, content.size(), is_written));
    finish();
    past_.barriers.shut();
    begun_.spawn(flush(*file_, is_flushed));
    ASSERT_TRUE(past_.barriers.is_visited_within(10s));
    EXPECT_FALSE(is_flushed);
    EXPECT_TRUE(volume_->find("file", vfs::follow_links::yes)) << "the lookup does not wait either";
    past_.barriers.open();
    finish();
    EXPECT_TRUE(is_flushed);
}

class modifications final : public vfs::change_listener {
public:
    void changed(const vfs::change& what) noexcept override {
        if (what.kind == vfs::change_kind::modified) ++count;
    }
    void overflowed() noexcept override {}
    void ended() noexcept override {}

    int count = 0;
};

// And changes are reported in the meantime.
TEST_P(served_image, never_makes_the_loop_wait_for_the_commit_a_second_after_a_change) {
    modifications seen;
    const auto root = volume_->find("", vfs::follow_links::yes).value();
    const auto watch = volume_->changes()->watch(*root, false, seen).value();
    io::task_group feeding(*loop_);
    feeding.spawn(volume_->changes()->run());
    past_.barriers.shut();
    bool is_written = false;
    begun_.spawn(write(*file_, more, content.size(), is_written));
    finish();
    while (not past_.barriers.is_visited_within(0ms))
        (void)loop_->try_run_for(5ms);
    if (journal_ == nullptr) {  // with a journal, a write waits for that commit, on a thread
        seen.count = 0;
        begun_.spawn(write(*file_, more, 0, is_written));
        const auto until = std::chrono::steady_clock::now() + 2s;
        while (seen.count == 0 and std::chrono::steady_clock::now() < until)
            (void)loop_->try_run_for(5ms);
        EXPECT_NE(seen.count, 0);
    }
    past_.barriers.open();
    feeding.cancel();
    while (feeding.size() + begun_.size() != 0)
        (void)loop_->run();
}

// An image in a file: the multiplexer reads data that is not in the host's memory.
class image_in_a_file : public io::on_each_volume {
protected:
    [[nodiscard]] file_device made_image() {
        const auto bytes = formatted(8 << 10, "-F 12 -s 8 -R 8 -f 2 -r 512");
        directory.write("image", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        return file_device::over(
                   io::file_handle::open({}, directory.path_of("image"), io::mode::write).value())
            .value();
    }
};
SLUICE_ON_EACH_VOLUME(image_in_a_file);

io::task<result<std::size_t>> read_all(vfs::node& from, std::string& into) {
    co_return co_await from.data()->co_read(std::as_writable_bytes(std::span(into)), 0);
}

TEST_P(image_in_a_file, is_read_directly_if_its_data_is_not_cached) {
    file_device image = made_image();
    gates past;
    slow_device slow(image, past);
    const simulated_clock clock;
    const auto loop = io::make_epoll_multiplexer(1).value();
    io::call_threads threads(1);
    const geometry shape = read_geometry(image).value();
    put(*file_system::mount(image, shape, clock).value(), "file", content);
    auto mounted = file_system::mount(slow, shape, clock, {.is_read_only = true}).value();
    ASSERT_TRUE(mounted->pins_extents());
    volume served(*loop, std::move(mounted), 1, &threads);
    const auto file = served.find("file", vfs::follow_links::yes).value();
    ASSERT_TRUE(file->data()->open_data({.read = true}));
    std::string found(content.size(), '?');
    // For the first read, a thread determines the location of the data.
    ASSERT_EQ(io::sync_wait(*loop, read_all(*file, found)).value(), content.size());
    EXPECT_EQ(found, content);
    past.reads.shut();
    found.assign(content.size(), '?');
    EXPECT_EQ(io::sync_wait(*loop, read_all(*file, found)).value(), content.size());
    EXPECT_EQ(found, content);
    EXPECT_FALSE(past.reads.is_visited_within(0ms));
    past.reads.open();
}

TEST_P(image_in_a_file, is_read_without_waiting_if_the_table_is_in_memory) {
    file_device image = made_image();
    const simulated_clock clock;
    const geometry shape = read_geometry(image).value();
    {
        const auto fs = file_system::mount(image, shape, clock).value();
        for (const char* const path : {"a", "b"})
            put(*fs, path, content);
    }
    const auto fs = file_system::mount(image, shape, clock).value();
    const auto a = fs->find("a").value();
    const auto b = fs->find("b").value();
    run_list::hint hint;
    std::string found(content.size(), '?');
    const auto into = std::as_writable_bytes(std::span(found));
    EXPECT_EQ(code(fs->read(*a, hint, into, 0, may_wait::no)), EAGAIN);
    EXPECT_EQ(code(fs->pin_extents(*a, {.offset = 0, .length = content.size()}, 99, may_wait::no)), EAGAIN);
    ASSERT_EQ(code(fs->read(*a, hint, into, 0)), 0);
    run_list::hint other;
    EXPECT_EQ(fs->read(*b, other, into, 0, may_wait::no).value(), content.size());
    EXPECT_EQ(found, content);
}

TEST_P(image_in_a_file, is_written_without_waiting_once_the_free_clusters_are_known) {
    file_device image = made_image();
    const simulated_clock clock;
    const auto fs = file_system::mount(image, read_geometry(image).value(), clock).value();
    const auto file = fs->create("file", false, attributes::none).value();
    run_list::hint hint;
    const auto write = [&](std::string_view what, std::uint64_t offset, may_wait waits) {
        return code(fs->write(*file, hint, std::as_bytes(std::span(what)), offset, waits));
    };
    EXPECT_EQ(write("first", 0, may_wait::no), EAGAIN);
    ASSERT_EQ(write("first", 0, may_wait::yes), 0);
    EXPECT_EQ(write("second", 5, may_wait::no), 0) << "lengthens it";
    EXPECT_EQ(write("F", 0, may_wait::no), 0) << "in place";
    EXPECT_EQ(write("far", 100'000, may_wait::no), EAGAIN) << "zeros would have to be written first";
    EXPECT_EQ(content_of(*fs, "file"), "Firstsecond");
    ASSERT_EQ(code(fs->truncate(*file, 0)), 0);
    ASSERT_EQ(write("new", 0, may_wait::yes), 0);
    EXPECT_EQ(content_of(*fs, "file"), "new");
}

}  // namespace
}  // namespace sluice::fat
