#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "sluice/base/random.hpp"
#include "sluice/fat/file_device.hpp"
#include "sluice/fat/image_testing.hpp"
#include "sluice/io/volume_test.hpp"

// One volume, many threads: names, growing files, and one file that all write to in place.

namespace sluice::fat {
namespace {

constexpr std::size_t threads = 4;
constexpr std::size_t block = 3000;  // neither a multiple nor a divisor of a cluster
constexpr std::size_t blocks = 64;

std::string filled(char with) {
    return std::string(block, with);
}

// Writes blocks of its own and reads those of all: each is one letter throughout.
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

// A file that grows, shrinks and is moved about, with others that come and go.
void work_with_names(file_system& fs, std::size_t own, std::atomic<int>& wrong) {
    seeded_random random(own + 100);
    const std::string folder = "thread " + std::to_string(own);
    const auto check = [&](const auto& done) { wrong += done ? 0 : 1; };
    check(fs.create(folder, true, attributes::none));
    run_list::hint hint;
    auto made = fs.create(folder + "/file", false, attributes::none).value();
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
        const std::string name = folder + "/a name of number " + std::to_string(i);
        check(fs.rename(*made, name, file_system::if_taken::refuse));
        check(fs.create(folder + "/short" + std::to_string(i), false, attributes::none));
        if (i % 2 == 0) check(fs.remove(*fs.find(folder + "/short" + std::to_string(i)).value()));
        (void)fs.status(*made);
        std::string found(wanted.size(), '?');
        const auto count = fs.read(*made, hint, std::as_writable_bytes(std::span(found)), 0);
        if (not count or *count != wanted.size() or found != wanted) ++wrong;
    }
}

TEST(file_system_threads, readers_and_writers_of_one_volume_get_what_is_theirs) {
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

// A disk that takes its time to make things durable.
class gated_device final : public device {
public:
    explicit gated_device(device& below) noexcept : below_(below) {}
    void shut() noexcept { is_shut_ = true; }
    void open() noexcept {
        is_shut_ = false;
        is_shut_.notify_all();
    }
    void wait_for_visitor() noexcept { is_visited_.wait(false); }

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
        if (is_shut_) {
            is_visited_ = true;
            is_visited_.notify_all();
        }
        is_shut_.wait(true);
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

TEST(file_system_threads, two_that_grow_at_once_lie_in_few_pieces) {
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

// Files of one letter each come and go in a volume that has no room for all; who is lent one, and has let go
// of it, reads it past the engine, after others had their turns, and finds its letter, or the zeros of what
// was given back to the host.
TEST(file_system_threads, who_was_lent_a_file_never_reads_another) {
    constexpr std::size_t file_bytes = 40U << 12;
    const io::test_directory folder(std::filesystem::current_path().string());
    const auto image = formatted(20 << 10, "-F 16 -s 8 -R 8 -f 2 -r 512");
    folder.write("image", std::string(reinterpret_cast<const char*>(image.data()), image.size()));
    file_device device =
        file_device::over(io::file_handle::open({}, folder.path_of("image"), io::mode::write).value())
            .value();
    const simulated_clock clock;
    const auto fs = file_system::mount(device, read_geometry(device).value(), clock).value();
    ASSERT_TRUE(fs->lends());
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
                (void)fs->write(*made, hint, std::as_bytes(std::span(content)), 0);  // there may be no room
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
                const auto lent = fs->lend(**file, {.offset = 0, .length = file_bytes}, 100);
                *file = {};  // its clusters are given up, but for what is lent of them
                if (not lent) continue;
                for (const int until = turns + 9; turns < until and not is_over;)
                    std::this_thread::yield();
                for (const vfs::host_run& run : lent->runs) {
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
