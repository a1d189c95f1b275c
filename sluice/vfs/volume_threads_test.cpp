#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/volume_testing.hpp"

// The thread safety that volume.hpp and node.hpp promise. ThreadSanitizer runs these tests.

namespace sluice::vfs {
namespace {

constexpr int threads = 4;
constexpr int rounds = 60;

class volumes_by_threads : public volume_test {
protected:
    volumes_by_threads() {
        std::vector<io::io_multiplexer*> all{multiplexer_.get()};
        for (int i = 0; i != threads; ++i) {
            loops_.push_back(io::make_epoll_multiplexer(0).value());
            all.push_back(loops_.back().get());
        }
        on().serve_on(all);
    }
    // The volume is destroyed first, together with its workers, because they wake loops.
    ~volumes_by_threads() override { tested_.reset(); }

    // Calls `work(number, its loop)` concurrently on several threads.
    template <class Work>
    void run_threads(Work work) {
        std::vector<std::thread> all;
        for (int i = 0; i != threads; ++i)
            all.emplace_back([&, i] { work(i, *loops_[static_cast<std::size_t>(i)]); });
        for (std::thread& each : all)
            each.join();
    }

    static std::string read_all(io::io_multiplexer& loop, node& from) {
        std::array<std::byte, 64> bytes{};
        const auto count = io::sync_wait(loop, from.data()->co_read(bytes, 0));
        return count ? std::string(reinterpret_cast<const char*>(bytes.data()), *count) : "failed";
    }
    static std::span<const std::byte> bytes_of(std::string_view text) {
        return std::as_bytes(std::span(text));
    }

    std::vector<std::unique_ptr<io::io_multiplexer>> loops_;
};

TEST_P(volumes_by_threads, each_thread_creates_finds_renames_and_removes_its_files) {
    (void)make_directory("d");
    std::atomic<int> problems{0};
    run_threads([&](int which, io::io_multiplexer& loop) {
        const std::string name = "d/File" + std::to_string(which);
        for (int i = 0; i != rounds; ++i) {
            auto made = on().create(name, {});
            bool is_right = made and (*made)->data()->open_data(writes);
            is_right = is_right and io::sync_wait(loop, (*made)->data()->co_write(bytes_of(name), 0));
            const auto other_case = on().find("D/FILE" + std::to_string(which), follow_links::yes);
            is_right = is_right and other_case and (*other_case)->key() == (*made)->key();
            is_right =
                is_right and (*other_case)->data()->open_data(reads) and read_all(loop, **other_case) == name;
            is_right = is_right and (*made)->names()->rename(name + "x", when_taken::refuse);
            is_right = is_right and not on().find(name, follow_links::yes);
            is_right = is_right and (*made)->names()->remove();
            problems += is_right ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
    EXPECT_TRUE(names("d").empty());
}

TEST_P(volumes_by_threads, exactly_one_creator_of_a_name_succeeds) {
    std::array<std::atomic<int>, rounds> made{};
    run_threads([&](int, io::io_multiplexer&) {
        for (int i = 0; i != rounds; ++i)
            made[static_cast<std::size_t>(i)] += on().create("n" + std::to_string(i), {}) ? 1 : 0;
    });
    for (const std::atomic<int>& each : made)
        EXPECT_EQ(each, 1);
}

TEST_P(volumes_by_threads, one_node_is_read_and_queried_by_all_threads_while_one_changes_it) {
    const node_ptr shared = make_file("shared", "0123456789");
    ASSERT_EQ(code(shared->data()->open_data(writes)), 0);
    std::atomic<int> problems{0};
    const file_key itself = shared->key();
    run_threads([&](int which, io::io_multiplexer& loop) {
        for (int i = 0; i != rounds; ++i) {
            bool is_right = true;
            if (which == 0) {
                const std::string name = i % 2 == 0 ? "renamed with a name that needs memory" : "shared";
                is_right = shared->names()->rename(name, when_taken::refuse).has_value();
                is_right = is_right and shared->change({.dos = dos_attributes::hidden});
                is_right =
                    is_right and io::sync_wait(loop, shared->data()->co_write(bytes_of("0123456789"), 0));
            } else {
                const auto status = shared->status();
                is_right = status and status->size_bytes == 10 and shared->key() == itself;
                is_right = is_right and not shared->path().empty() and shared->kind() == node_kind::file;
                is_right = is_right and read_all(loop, *shared) == "0123456789";
                if (on().features().has_security)
                    is_right = is_right and shared->attached()->security_as_of(*status);
                if (on().features().has_streams) is_right = is_right and shared->attached()->streams();
                is_right = is_right and io::sync_wait(loop, shared->co_flush());
            }
            problems += is_right ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
}

TEST_P(volumes_by_threads, one_stream_is_read_by_all_threads_while_one_writes_it) {
    SLUICE_NEEDS(has_streams);
    const node_ptr file = make_file("file");
    const auto stream = file->attached()->open_stream({.name = "s", .create = true});
    ASSERT_TRUE(stream);
    ASSERT_EQ(code((*stream)->data()->open_data(writes)), 0);
    std::atomic<int> problems{0};
    run_threads([&](int which, io::io_multiplexer& loop) {
        for (int i = 0; i != rounds; ++i) {
            bool is_right = true;
            if (which == 0) {
                is_right =
                    io::sync_wait(loop, (*stream)->data()->co_write(bytes_of("content"), 0)).has_value();
            } else {
                const std::string read = read_all(loop, **stream);
                is_right = read.empty() or read == "content";
                is_right = is_right and (*stream)->status() and (*stream)->key().stream != 0;
            }
            problems += is_right ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
}

// One thread makes it grow, shrink and grow again; it becomes a file on the way.
TEST_P(volumes_by_threads, a_stream_that_grows_is_read_queried_and_opened_by_all_threads) {
    SLUICE_NEEDS(has_streams);
    const node_ptr file = make_file("file");
    std::vector<node_ptr> streams;
    for (int i = 0; i != 8; ++i) {
        auto stream = file->attached()->open_stream({.name = "s" + std::to_string(i), .create = true});
        ASSERT_TRUE(stream);
        ASSERT_EQ(code((*stream)->data()->open_data(writes)), 0);
        ASSERT_EQ(code(write(**stream, "start")), 0);
        streams.push_back(std::move(*stream));
    }
    std::atomic<int> problems{0};
    // Once for all streams, because a loop belongs to the first thread that runs it.
    run_threads([&](int which, io::io_multiplexer& loop) {
        for (int i = 0; i != rounds / 4 * static_cast<int>(streams.size()); ++i) {
            node& stream = *streams[static_cast<std::size_t>(i / (rounds / 4))];
            bool is_right = true;
            if (which == 0) {
                const std::string more(i % (rounds / 4) == 0 ? 10'000U : 100U, 'x');
                is_right = stream.data()->truncate(5).has_value();
                is_right = is_right and io::sync_wait(loop, stream.data()->co_write(bytes_of(more), 5));
            } else {
                is_right = read_all(loop, stream).starts_with("start");
                is_right = is_right and stream.status();
                const auto own = file->attached()->open_stream({.name = stream.stream_name()});
                is_right = is_right and own and (*own)->data()->open_data(reads);
                is_right = is_right and read_all(loop, **own).starts_with("start");
                is_right = is_right and file->attached()->streams();
            }
            problems += is_right ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
}

// Changes of one file are serialised, but those of two of its streams are not, nor those of two
// servers.
TEST_P(volumes_by_threads, several_streams_of_one_file_grow_at_once) {
    SLUICE_NEEDS(has_streams);
    const node_ptr file = make_file("file");
    std::atomic<int> problems{0};
    run_threads([&](int which, io::io_multiplexer& loop) {
        const std::string text(5000, static_cast<char>('a' + which));
        for (int i = 0; i != 10; ++i) {
            const std::string name = std::to_string(which) + '-' + std::to_string(i);
            const auto stream = file->attached()->open_stream({.name = name, .create = true});
            bool is_right = stream and (*stream)->data()->open_data(writes);
            is_right = is_right and io::sync_wait(loop, (*stream)->data()->co_write(bytes_of(text), 0));
            is_right = is_right and (*stream)->status()->size_bytes == text.size();
            if (i % 2 == 1) is_right = is_right and (*stream)->names()->remove();
            problems += is_right ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
    EXPECT_EQ(file->attached()->streams().value().size(), 5U * threads);
}

TEST_P(volumes_by_threads, a_directory_is_listed_while_names_are_created_and_removed) {
    const node_ptr directory = make_directory("d");
    (void)make_file("d/stays");
    std::atomic<int> problems{0};
    run_threads([&](int which, io::io_multiplexer&) {
        for (int i = 0; i != rounds; ++i) {
            if (which == 0) {
                auto made = on().create("d/n" + std::to_string(i), {});
                problems += made and (*made)->names()->remove() ? 0 : 1;
                continue;
            }
            int stays = 0;
            const auto listing = directory->children()->list();
            for (bool goes_on = listing.has_value(); goes_on;) {
                const auto next = (*listing)->next();
                goes_on = next and * next != nullptr;
                if (goes_on and (*next)->name == "stays") ++stays;
            }
            problems += stays == 1 ? 0 : 1;
        }
    });
    EXPECT_EQ(problems, 0);
}

class deaf_listener final : public change_listener {
public:
    void changed(const change&) noexcept override { ++notifications; }
    void overflowed() noexcept override { ++notifications; }
    void ended() noexcept override { ++notifications; }
    std::atomic<int> notifications{0};
};

TEST_P(volumes_by_threads, watches_begin_and_end_on_any_thread_while_changes_are_delivered) {
    if (on().changes() == nullptr) GTEST_SKIP() << "the volume reports no changes";
    const node_ptr directory = make_directory("d");
    std::atomic<int> problems{0};
    std::atomic<bool> is_done{false};
    deaf_listener kept;
    const auto longest = on().changes()->watch(*directory, true, kept);
    ASSERT_TRUE(longest);
    std::thread others([&] {
        run_threads([&](int which, io::io_multiplexer&) {
            for (int i = 0; i != rounds; ++i) {
                deaf_listener own;
                const auto watch = on().changes()->watch(*directory, true, own);
                const std::string name = "d/" + std::to_string(which) + "-" + std::to_string(i);
                problems += watch and on().create(name, {.kind = node_kind::directory}) ? 0 : 1;
            }
        });
        is_done = true;
        (void)on().create("d/last", {});  // wakes the thread that waits for changes
    });
    while (not is_done or kept.notifications < threads * rounds) {
        if (not io::sync_wait(*multiplexer_, on().changes()->co_changed())) break;
        on().changes()->deliver();
    }
    others.join();
    EXPECT_EQ(problems, 0);
    EXPECT_GE(kept.notifications, threads * rounds);
}

TEST_P(volumes_by_threads, nodes_are_destroyed_on_threads_that_did_not_create_them) {
    constexpr std::size_t count = 40;
    std::vector<node_ptr> made;
    for (std::size_t i = 0; i != count; ++i) {
        made.push_back(make_file("f" + std::to_string(i), "x"));
        ASSERT_EQ(code(made.back()->data()->open_data(writes)), 0);
    }
    run_threads([&](int which, io::io_multiplexer&) {
        for (std::size_t i = static_cast<std::size_t>(which); i < count; i += threads)
            made[i].reset();
    });
    EXPECT_EQ(names("").size(), count);
}

SLUICE_TEST_EVERY_VOLUME(volumes_by_threads);

}  // namespace
}  // namespace sluice::vfs
