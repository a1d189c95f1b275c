#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/io/path/volume_test.hpp"

// One volume with many threads: names, growing files, and one file that all threads write in place.

namespace sluice::fat {
namespace {

constexpr std::size_t threads = 4;
constexpr std::size_t block = 3000;  // neither a multiple nor a divisor of a cluster
constexpr std::size_t blocks = 64;

std::string filled(char with) {
    return std::string(block, with);
}

// Writes its own blocks and reads the blocks of all threads: each contains a single letter.
void work_in_place(file_system& fs, std::size_t own, std::atomic<int>& wrong) {
    seeded_random random(own);
    const auto file = fs.find("shared").value();
    run_list::hint hint;
    std::string read(block, '?');
    for (int i = 0; i < 300; ++i) {
        const std::size_t mine = random.below(blocks / threads) * threads + own;
        const std::string what = filled(static_cast<char>('a' + random.below(26)));
        if (not fs.write(*file, hint, std::as_bytes(std::span(what)), mine * block)) ++wrong;
        const std::size_t any = random.below(blocks);
        const auto count = fs.read(*file, hint, std::as_writable_bytes(std::span(read)), any * block);
        if (not count or *count != block or read.find_first_not_of(read[0]) != read.npos) ++wrong;
    }
}

// A file that grows, shrinks and moves, while other files are created and removed.
void work_with_names(file_system& fs, std::size_t own, std::atomic<int>& wrong) {
    seeded_random random(own + 100);
    const std::string directory = "thread " + std::to_string(own);
    const auto check = [&](const auto& done) { wrong += done ? 0 : 1; };
    check(fs.create(directory, true, attributes::none));
    run_list::hint hint;
    auto made = fs.create(directory + "/file", false, attributes::none).value();
    std::string wanted;
    for (int i = 0; i < 60; ++i) {
        const std::string more(1 + random.below(20'000), static_cast<char>('A' + i % 26));
        check(fs.write(*made, hint, std::as_bytes(std::span(more)), wanted.size()));
        wanted += more;
        if (random.below(5) == 0) {
            wanted.resize(random.below(wanted.size()));
            check(fs.truncate(*made, wanted.size()));
        }
        if (random.below(10) == 0) check(fs.flush(*made));
        const std::string name = directory + "/a name of number " + std::to_string(i);
        check(fs.rename(*made, name, file_system::if_taken::refuse));
        check(fs.create(directory + "/short" + std::to_string(i), false, attributes::none));
        if (i % 2 == 0) check(fs.remove(*fs.find(directory + "/short" + std::to_string(i)).value()));
        (void)fs.status(*made);
        std::string found(wanted.size(), '?');
        const auto count = fs.read(*made, hint, std::as_writable_bytes(std::span(found)), 0);
        if (not count or *count != wanted.size() or found != wanted) ++wrong;
    }
}

TEST(file_system_threads, readers_and_writers_of_one_volume_see_only_their_own_data) {
    mounted_image on(formatted(20 << 10, "-F 16 -s 1"));
    file_system& fs = *on.system;
    {
        const std::string zeros = filled('0');
        const auto file = fs.create("shared", false, attributes::none).value();
        run_list::hint hint;
        for (std::size_t i = 0; i < blocks; ++i)
            ASSERT_EQ(code(fs.write(*file, hint, std::as_bytes(std::span(zeros)), i * block)), 0);
    }
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < threads; ++i) {
        all.emplace_back([&, i] { work_in_place(fs, i, wrong); });
        all.emplace_back([&, i] { work_with_names(fs, i, wrong); });
    }
    all.emplace_back([&] {
        for (int i = 0; i < 50; ++i)
            if (not fs.commit()) ++wrong;
    });
    all.clear();
    EXPECT_EQ(wrong, 0);
    const std::string before = picture(fs);
    ASSERT_EQ(code(fs.unmount()), 0);
    const verdict said = fsck(on.image.bytes());
    EXPECT_TRUE(said.is_clean) << said.said;
    on.mount();
    EXPECT_EQ(picture(*on.system), before);
}

// A disk whose barriers block until the test opens the gate.
class gated_device final : public device {
public:
    explicit gated_device(device& below) noexcept : below_(below) {}
    void shut(int barriers_before = 0) noexcept {
        to_pass_ = barriers_before;
        is_shut_ = true;
    }
    void open() noexcept {
        is_shut_ = false;
        is_shut_.notify_all();
    }
    void wait_for_visitor() noexcept { is_visited_.wait(false); }
    [[nodiscard]] int barriers() const noexcept { return barriers_; }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return true; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override {
        return below_.write_at(offset, pieces);
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind kind) noexcept override {
        ++barriers_;
        if (is_shut_ and to_pass_-- <= 0) {
            is_visited_ = true;
            is_visited_.notify_all();
            is_shut_.wait(true);
        }
        return below_.barrier(kind);
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override {
        return below_.punch_hole(range);
    }
    using device::read_at;
    using device::write_at;

private:
    device& below_;
    std::atomic<bool> is_shut_ = false;
    std::atomic<bool> is_visited_ = false;
    std::atomic<int> to_pass_ = 0;
    std::atomic<int> barriers_ = 0;
};

TEST(file_system_threads, transfers_and_status_do_not_wait_for_the_disk_of_a_commit) {
    memory_device image(formatted(4096, "-F 12"));
    gated_device slow(image);
    const simulated_clock clock;
    const auto fs = file_system::mount(slow, read_geometry(image).value(), clock).value();
    put(*fs, "file", std::string(10'000, 'b'));
    const auto file = fs->find("file").value();
    slow.shut();
    auto commit = std::async(std::launch::async, [&] { return code(fs->commit()); });
    slow.wait_for_visitor();
    auto work = std::async(std::launch::async, [&] {
        run_list::hint hint;
        const std::string text(5000, 'a');
        EXPECT_EQ(code(fs->write(*file, hint, std::as_bytes(std::span(text)), 2000)), 0);
        std::string found(5000, '?');
        EXPECT_EQ(fs->read(*file, hint, std::as_writable_bytes(std::span(found)), 2000).value(), 5000U);
        EXPECT_EQ(found, text);
        const std::string more(20'000, 'm');
        EXPECT_EQ(code(fs->write(*file, hint, std::as_bytes(std::span(more)), 10'000)), 0);
        EXPECT_EQ(fs->status(*file).size_bytes, 30'000U);
    });
    EXPECT_EQ(work.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    slow.open();
    EXPECT_EQ(commit.get(), 0);
}

// Makes changes for a commit: a new file, a removed one, and one whose name crosses sectors.
void make_changes(file_system& fs, const std::string& fresh, inode_handle& gone) {
    put(fs, fresh, std::string(10'000, 'b'));
    put(fs, std::string(250, 'l') + fresh, std::string(10'000, 'b'));
    put(fs, "gone", std::string(10'000, 'c'));
    gone = fs.find("gone").value();
    ASSERT_EQ(code(fs.remove(*gone)), 0);
}

// Checks that lookups work during each barrier of an operation that follows changes: a commit or an
// unmount.
void look_beside(const std::function<int(file_system&)>& work, int barriers_min) {
    memory_device image(formatted(4096, "-F 12"));
    {
        const simulated_clock clock;
        const auto fs = file_system::mount(image, read_geometry(image).value(), clock).value();
        ASSERT_TRUE(fs->create("dir", true, attributes::none));
        put(*fs, "dir/file", "content");
        ASSERT_EQ(code(fs->unmount()), 0);
    }
    gated_device slow(image);
    const simulated_clock clock;
    int at = 0;
    for (int before = 1, after = 0; at < before - after; ++at) {
        const auto fs = file_system::mount(slow, read_geometry(image).value(), clock).value();
        const std::string fresh = "new " + std::to_string(at);
        inode_handle gone;
        make_changes(*fs, fresh, gone);
        after = slow.barriers();
        slow.shut(at);
        auto waiting = std::async(std::launch::async, [&] { return work(*fs); });
        slow.wait_for_visitor();
        auto looking = std::async(std::launch::async, [&] {
            const auto file = fs->find("dir/file").value();  // the directory is not in memory
            EXPECT_EQ(fs->path_of(*file), "dir/file");
            EXPECT_EQ(content_of(*fs, fresh), std::string(10'000, 'b'));
            EXPECT_EQ(code(fs->find("gone")), ENOENT);
            const auto directory = fs->find("dir").value();
            EXPECT_EQ(fs->list(*directory, 0).value()->name, "file");
            gone = {};
        });
        EXPECT_EQ(looking.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "barrier " << at;
        slow.open();
        EXPECT_EQ(waiting.get(), 0);
        looking.get();
        before = slow.barriers();
        ASSERT_EQ(code(fs->unmount()), 0);
        const verdict said = fsck(image.bytes());
        ASSERT_TRUE(said.is_clean) << said.said;
    }
    EXPECT_GE(at, barriers_min);
}

TEST(file_system_threads, lookups_listings_and_closing_do_not_wait_for_the_disk_during_a_commit) {
    look_beside([](file_system& fs) { return code(fs.commit()); }, 5);
}

TEST(file_system_threads, lookups_listings_and_closing_do_not_wait_for_the_disk_during_an_unmount) {
    look_beside([](file_system& fs) { return code(fs.unmount()); }, 7);
}

// The result of an interrupted change of case is found when its directory is loaded: here, during a
// commit.
TEST(file_system_threads, two_spellings_found_while_a_commit_waits_are_repaired_by_the_next_commit) {
    mounted_image on(formatted(1024, "-F 12"));
    ASSERT_TRUE(on.system->create("d", true, attributes::none));
    put(*on.system, "d/target", std::string(4000, 'a'));
    put(*on.system, "d/Tarxet", std::string(100, 'b'));
    ASSERT_EQ(code(on.system->unmount()), 0);
    const std::span bytes(reinterpret_cast<char*>(on.image.bytes().data()), on.image.bytes().size());
    const auto find = [&](std::string_view what) { return std::ranges::search(bytes, what).data(); };
    find(std::string_view("r\0x\0e\0", 6))[2] = 'g';
    std::copy_n(find("TARGET     ") + 26, 6, find("TARXET~1   ") + 26);  // first cluster and size
    const std::vector<std::byte> damaged(on.image.bytes().begin(), on.image.bytes().end());
    int at = 0;
    for (int before = 1, after = 0; at < before - after; ++at) {
        std::ranges::copy(damaged, on.image.bytes().begin());
        gated_device slow(on.image);
        const auto fs = file_system::mount(slow, on.shape, on.clock).value();
        put(*fs, "gone", std::string(10'000, 'c'));
        ASSERT_EQ(code(fs->commit()), 0);
        ASSERT_EQ(code(fs->remove(*fs->find("gone").value())), 0);
        after = slow.barriers();
        slow.shut(at);
        auto commit = std::async(std::launch::async, [&] { return code(fs->commit()); });
        slow.wait_for_visitor();
        EXPECT_TRUE(fs->find("d/target"));
        slow.open();
        EXPECT_EQ(commit.get(), 0);
        before = slow.barriers();
        ASSERT_EQ(code(fs->unmount()), 0);
        const std::string said = fsck(on.image.bytes()).said;
        EXPECT_EQ(said.find("share clusters"), std::string::npos) << at << ": " << said;
        EXPECT_EQ(content_of(*file_system::mount(on.image, on.shape, on.clock).value(), "d/TARGET"),
                  std::string(4000, 'a'));
    }
    EXPECT_GE(at, 4);
}

// There are more directories than are kept in memory: some are evicted all the time while others
// are changed.
TEST(file_system_threads, directories_come_and_go_in_memory_while_names_change) {
    constexpr std::size_t directories = 1300;
    mounted_image on(formatted(20 << 10, "-F 16 -s 1"));
    file_system& fs = *on.system;
    const auto name = [](std::size_t number) { return "all/d" + std::to_string(number); };
    ASSERT_TRUE(fs.create("all", true, attributes::none));
    for (std::size_t i = 0; i < directories; ++i) {
        ASSERT_TRUE(fs.create(name(i), true, attributes::none));
        put(fs, name(i) + "/file", name(i));
    }
    std::atomic<int> wrong = 0;
    std::atomic<bool> is_over = false;
    std::vector<std::jthread> all;
    for (std::size_t own : {0U, 1U})
        all.emplace_back([&, own] {
            seeded_random random(own);
            while (not is_over) {
                const std::string one = name(random.below(directories));
                const auto file = fs.find(one + "/file");
                if (not file or fs.path_of(**file) != one + "/file") ++wrong;
                const auto directory = fs.find(one);
                if (not directory or not fs.list(**directory, 0)) ++wrong;
            }
        });
    for (std::size_t own : {2U, 3U})
        all.emplace_back([&, own] {
            seeded_random random(own);
            for (int i = 0; i < 400; ++i) {
                const std::string path = name(random.below(directories)) + "/more of " + std::to_string(own);
                const auto made = fs.create(path, false, attributes::none);
                if (not made or not fs.remove(**made)) ++wrong;
                if (i % 20 == 0 and not fs.commit()) ++wrong;
            }
            is_over = true;
        });
    all.clear();
    EXPECT_EQ(wrong, 0);
    ASSERT_EQ(code(fs.unmount()), 0);
    const verdict said = fsck(on.image.bytes());
    EXPECT_TRUE(said.is_clean) << said.said;
}

TEST(file_system_threads, two_files_that_grow_concurrently_have_few_runs) {
    mounted_image on(formatted(64 << 10, "-F 32 -s 8"));
    file_system& fs = *on.system;
    const std::string part(64 << 10, 'x');
    std::vector<std::jthread> all;
    for (const char* name : {"one", "two"})
        all.emplace_back([&, name] {
            const auto file = fs.create(name, false, attributes::none).value();
            run_list::hint hint;
            for (std::uint64_t i = 0; i < 256; ++i)
                ASSERT_EQ(code(fs.write(*file, hint, std::as_bytes(std::span(part)), i * part.size())), 0);
        });
    all.clear();
    for (const char* name : {"one", "two"}) {
        int pieces = 0;
        const auto file = fs.find(name).value();
        ASSERT_EQ(code(fs.for_each_extent(*file, {.offset = 0, .length = 16U << 20},
                                          [&](const file_system::piece&) { return ++pieces != 0; })),
                  0);
        EXPECT_LE(pieces, 6) << name;
    }
}

// Files of one letter each are created and removed on a volume that has no room for all. A thread
// that has pinned a file reads the image directly after other threads had a chance to run. It must
// find the letter of the file, or zeros from blocks that the host has freed.
TEST(file_system_threads, a_thread_that_has_pinned_a_file_never_reads_another) {
    constexpr std::size_t file_bytes = 40U << 12;
    const io::test_directory directory(std::filesystem::current_path().string());
    const auto image = formatted(20 << 10, "-F 16 -s 8 -R 8 -f 2 -r 512");
    directory.write("image", std::string(reinterpret_cast<const char*>(image.data()), image.size()));
    file_device device =
        file_device::over(io::file_handle::open({}, directory.path_of("image"), io::mode::write).value())
            .value();
    const simulated_clock clock;
    const auto fs = file_system::mount(device, read_geometry(device).value(), clock).value();
    ASSERT_TRUE(fs->pins_extents());
    put(*fs, "ballast", std::string(19U << 20, '.'));
    std::atomic<int> wrong{0};
    std::atomic<int> looked{0};
    std::atomic<bool> is_over{false};
    std::atomic<int> turns{0};
    std::vector<std::jthread> all;
    for (const char letter : {'a', 'b', 'c'}) {
        all.emplace_back([&, letter] {
            const std::string name(1, letter);
            const std::string content(file_bytes, letter);
            run_list::hint hint;
            for (int i = 0; i < 150; ++i) {
                auto made = fs->create(name, false, attributes::none).value();
                // The volume may be full.
                (void)fs->write(*made, hint, std::as_bytes(std::span(content)), 0);
                if (i % 2 == 0) (void)fs->truncate(*made, 5000);
                wrong += fs->remove(*made) ? 0 : 1;
                made = {};
                if (i % 4 == 0) (void)fs->commit();
                ++turns;
            }
            is_over = true;
        });
        all.emplace_back([&, letter] {
            std::string seen(file_bytes, '?');
            while (not is_over) {
                auto file = fs->find(std::string(1, letter));
                if (not file) continue;
                const auto pinned = fs->pin_extents(**file, {.offset = 0, .length = file_bytes}, 100);
                *file = {};  // its clusters are freed, except pinned ones
                if (not pinned) continue;
                for (const int until = turns + 9; turns < until and not is_over;)
                    std::this_thread::yield();
                for (const vfs::host_run& run : pinned->runs) {
                    if (not run.place) continue;
                    const auto part = std::as_writable_bytes(std::span(seen)).first(run.length);
                    wrong += device.read_at(*run.place, part) ? 0 : 1;
                    const auto other = std::string_view(seen)
                                           .substr(0, run.length)
                                           .find_first_not_of(std::string{letter, '\0'});
                    wrong += other == std::string::npos ? 0 : 1;
                    ++looked;
                }
            }
        });
    }
    all.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(looked, 0);
}

}  // namespace
}  // namespace sluice::fat
