// An attacker writes to the file of memory_map and truncates it: no user crashes or hangs, and
// users get errors.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "sluice/fsmutex/async_lock.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

constexpr auto damaged = std::errc::bad_message;
constexpr std::array<std::uint32_t, 8> hostile_values{0,      1,           2,           5,
                                                      32'768, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff};

// Each read advances it by a second, so that a wait that is too long ends at once.
class hasty_clock final : public clock_source {
public:
    [[nodiscard]] steady_time steady_now() const noexcept override {
        return steady_time(std::chrono::seconds(ticks_.fetch_add(1, std::memory_order_relaxed)));
    }
    [[nodiscard]] utc_time utc_now() const noexcept override { return machine_.utc_now(); }

private:
    mutable std::atomic<std::int64_t> ticks_ = 1;
    system_clock_source machine_;
};

class a_damaged_map : public testing::Test {
protected:
    [[nodiscard]] result<std::unique_ptr<shared_fs_mutex>> try_to_open(const dependencies& from) const {
        return memory_map::open(directory.anchor(), "map", from);
    }
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open(
        const dependencies& from = dependencies::of_this_machine()) const {
        return try_to_open(from).value();
    }
    void cut(std::uint64_t size) const { std::filesystem::resize_file(directory.path_of("map"), size); }
    void write(std::uint64_t offset, std::uint32_t word) const {
        const int file = ::open(directory.path_of("map").c_str(), O_WRONLY | O_CLOEXEC);
        EXPECT_EQ(::pwrite(file, &word, sizeof word, static_cast<off_t>(offset)), sizeof word);
        ::close(file);
    }
    [[nodiscard]] static std::uint64_t offset_of_link(std::uint32_t number, std::uint64_t field) {
        return offsetof(mapped::memory, requests) + number * sizeof(mapped::request) +
               offsetof(mapped::request, links) + field;
    }
    [[nodiscard]] dependencies in_haste() {
        return {.clock = &clock, .random = dependencies::of_this_machine().random};
    }
    static bool is_right_or_damaged(const result<void>& outcome) {
        return outcome or outcome.error() == damaged;
    }

    io::test_directory directory{"/dev/shm"};
    hasty_clock clock;
};

TEST_F(a_damaged_map, is_an_error_for_holder_and_waiter_when_it_is_cut_to_nothing) {
    const auto mutex = open();
    const auto other = open();
    auto held = mutex->lock(entity(1)).value();
    EXPECT_TRUE(held.check());
    std::jthread waiter([&] { EXPECT_EQ(other->lock(entity(1)).error(), damaged); });
    std::jthread timed_waiter([&] { EXPECT_EQ(other->lock(entity(1), 1h).error(), damaged); });
    std::this_thread::sleep_for(10ms);  // whether they already sleep makes no difference
    cut(0);
    EXPECT_EQ(held.check().error(), damaged);
    waiter.join();
    timed_waiter.join();
    EXPECT_EQ(held.unlock().error(), damaged);
    EXPECT_TRUE(held.unlock()) << "again";
    EXPECT_EQ(mutex->try_lock(entity(2)).error(), damaged);
    EXPECT_EQ(mutex->list().error(), damaged);
}

TEST_F(a_damaged_map, is_an_error_for_a_waiter_when_it_is_cut_after_everything_in_use) {
    const auto mutex = open();
    const auto other = open();
    auto held = mutex->lock(entity(1)).value();
    std::jthread waiter([&] { EXPECT_EQ(other->lock(entity(1)).error(), damaged); });
    std::this_thread::sleep_for(10ms);
    cut(sizeof(mapped::memory) - 4096);
    waiter.join();
    EXPECT_EQ(held.unlock().error(), damaged);
}

TEST_F(a_damaged_map, is_an_error_when_it_is_unlocked_after_it_was_cut) {
    const auto mutex = open();
    auto held = mutex->lock(std::vector{entity(1), entity(2)}).value();
    cut(0);
    EXPECT_EQ(held.unlock().error(), damaged);
}

TEST_F(a_damaged_map, crashes_no_user_at_any_truncated_length) {
    for (std::uint64_t size = 0; size <= sizeof(mapped::memory); size += size < 90'000 ? 2'000 : 50'000) {
        auto mutex = open(in_haste());
        auto other = open(in_haste());
        auto held = mutex->lock(std::vector{entity(1), entity(2)}).value();
        const std::vector wanted{entity(2)};
        auto waits = lock_attempt::begin(*other, wanted, {}).value();
        cut(size);
        EXPECT_EQ(held.check().has_value(), size >= sizeof(mapped::memory)) << size;
        const auto polled = waits.poll();
        EXPECT_TRUE(polled or polled.error() == damaged);
        EXPECT_TRUE(is_right_or_damaged(held.unlock())) << size;
        const auto next = mutex->try_lock(entity(3));
        EXPECT_TRUE(next or next.error() == damaged);
        const auto refused = try_to_open(in_haste());
        EXPECT_TRUE(refused or refused.error() == damaged) << size;
    }
}

TEST_F(a_damaged_map, is_refused_until_all_have_closed_it_and_then_created_again) {
    auto mutex = open();
    auto other = open();
    auto held = mutex->lock(entity(1)).value();
    write(offset_of_link(0, offsetof(mapped::link, is_queued) - 3), 0);
    EXPECT_EQ(held.unlock().error(), damaged);
    EXPECT_EQ(other->try_lock(entity(1)).error(), damaged) << "the others notice it";
    EXPECT_EQ(try_to_open(dependencies::of_this_machine()).error(), damaged);
    other.reset();
    mutex.reset();
    EXPECT_EQ(directory.entry_count(), 0) << "the last user removes it";
    mutex = open();
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_F(a_damaged_map, is_created_again_after_all_its_users_were_killed) {
    for (const std::uint64_t size : {sizeof(mapped::memory), std::size_t{64} << 10, std::size_t{100}}) {
        process user([&] {
            const auto mutex = open();
            auto held = mutex->lock(entity(1)).value();
            write(offsetof(mapped::memory, is_damaged), 1);
            cut(size);
        });
        EXPECT_TRUE(user.join());
        EXPECT_TRUE(open()->try_lock(entity(1))) << size;
    }
}

TEST_F(a_damaged_map, stays_usable_when_it_is_extended) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    cut(sizeof(mapped::memory) + 12'345);
    EXPECT_TRUE(held.check());
    const auto other = open();
    EXPECT_EQ(other->try_lock(entity(1)).error(), std::errc::timed_out);
    EXPECT_TRUE(held.unlock());
    EXPECT_TRUE(other->try_lock(entity(1)));
}

TEST_F(a_damaged_map, is_an_error_for_a_holder_whose_request_was_wiped) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    cut(0);
    cut(sizeof(mapped::memory));
    EXPECT_EQ(held.check().error(), damaged);
    EXPECT_EQ(held.unlock().error(), damaged);
}

TEST_F(a_damaged_map, is_an_error_when_its_latch_names_no_user) {
    const auto mutex = open();
    for (const std::uint32_t forged : {0x8000'0000U, 0x7ffU, 0x800U}) {
        const auto fresh = memory_map::open(directory.anchor(), std::to_string(forged), in_haste()).value();
        const int file = ::open(directory.path_of(std::to_string(forged)).c_str(), O_WRONLY | O_CLOEXEC);
        ASSERT_EQ(::pwrite(file, &forged, sizeof forged, offsetof(mapped::memory, latch)), sizeof forged);
        ::close(file);
        EXPECT_EQ(fresh->try_lock(entity(1)).error(), damaged) << forged;
    }
}

TEST_F(a_damaged_map, ends_a_wait_for_a_latch_that_a_living_process_has_for_too_long) {
    auto mutex = open(in_haste());
    const auto other = open(in_haste());
    auto held = mutex->lock(entity(1)).value();
    // The second instance, in its first generation: `other`, which has it open.
    const std::uint32_t generation = [&] {
        const std::string content = directory.content("map");
        std::uint32_t word = 0;
        std::memcpy(&word,
                    content.data() + offsetof(mapped::memory, instances) + sizeof(mapped::instance) +
                        offsetof(mapped::instance, generation),
                    sizeof word);
        return word;
    }();
    write(offsetof(mapped::memory, latch), generation << 11 | 2);
    EXPECT_EQ(mutex->try_lock(entity(2)).error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(held.unlock().error(), std::errc::device_or_resource_busy);
    write(offsetof(mapped::memory, latch), 0);
    EXPECT_FALSE(other->try_lock(entity(1))) << "the release failed";
    EXPECT_TRUE(other->try_lock(entity(2)));
    mutex.reset();
    const auto next = other->try_lock(entity(1));
    EXPECT_TRUE(next and next->owner_died()) << "it is released when the mutex is destroyed";
}

// With a holder, a waiter, and a request of several records, each word that they use takes each
// value.
TEST_F(a_damaged_map, crashes_no_user_if_any_word_is_replaced) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t at = 0; at != offsetof(mapped::memory, last_of_processor) + 64; at += 4)
        offsets.push_back(at);
    for (std::uint64_t at = 0; at != 3 * sizeof(mapped::instance); at += 4)
        offsets.push_back(offsetof(mapped::memory, instances) + at);
    for (std::uint64_t at = 0; at != 4 * sizeof(mapped::request); at += 4)
        offsets.push_back(offsetof(mapped::memory, requests) + at);
    std::vector<entity> many;
    for (std::uint64_t e = 1; e != 12; ++e)
        many.emplace_back(e);
    unsigned found = 0;
    for (const std::uint64_t at : offsets)
        for (const std::uint32_t value : hostile_values) {
            auto mutex = open(in_haste());
            auto other = open(in_haste());
            auto held = mutex->lock(many).value();
            const std::vector wanted{entity(1), entity(2)};
            auto waits = lock_attempt::begin(*other, wanted, {}).value();
            write(at, value);
            const auto listed = other->list();
            const auto polled = waits.poll();
            const auto unlocked = held.unlock();
            auto next = mutex->try_lock(std::vector{entity(2), entity(20)});
            (void)waits.poll();
            found += not unlocked or not polled or not listed or (not next and next.error() == damaged);
            const auto is_expected = [](const error& why) {
                return why == damaged or why == std::errc::device_or_resource_busy or
                       why == std::errc::timed_out or why == std::errc::no_lock_available;
            };
            ASSERT_TRUE(unlocked or is_expected(unlocked.error())) << at << ' ' << value;
            ASSERT_TRUE(polled or is_expected(polled.error())) << at << ' ' << value;
            ASSERT_TRUE(next or is_expected(next.error())) << at << ' ' << value;
            if (next) (void)next->unlock();
            { auto gone = waits.take(); }
            mutex.reset();
            other.reset();
            std::filesystem::remove(directory.path_of("map"));
        }
    EXPECT_GT(found, offsets.size()) << "of " << offsets.size() * hostile_values.size();
}

// The queue alone, in memory with ends that a sanitizer guards.
class a_damaged_queue : public testing::Test {
protected:
    a_damaged_queue() {
        holder = enter({entity(1), entity(2)});
        waiter = enter({entity(1)});
        last = enter({entity(1), entity(3)});
    }
    [[nodiscard]] mapped_queue::request_key enter(std::initializer_list<entity> wanted,
                                                  std::uint32_t instance = 1) const {
        return mapped_queue(*memory).enter({.instance = instance}, std::vector(wanted)).value();
    }
    [[nodiscard]] mapped::link& link_of(const mapped_queue::request_key& of, std::uint32_t index = 0) const {
        return memory->requests[of.number].links[index];
    }
    [[nodiscard]] static std::uint32_t name_of(const mapped_queue::request_key& of) {
        return of.number * mapped::links_per_request + 1;
    }
    template <class Operation>
    [[nodiscard]] bool finds_damage(Operation&& operation) const {
        mapped_queue queue(*memory);
        operation(queue);
        return queue.is_damaged();
    }
    [[nodiscard]] bool leaving_finds_damage(const mapped_queue::request_key& of, bool knows_grant) const {
        return finds_damage([&](mapped_queue& queue) {
            mapped_queue::wake_list list;
            queue.leave(of, knows_grant, list);
        });
    }

    std::unique_ptr<mapped::memory> memory = std::make_unique<mapped::memory>();
    mapped_queue::request_key holder{};
    mapped_queue::request_key waiter{};
    mapped_queue::request_key last{};
};

TEST_F(a_damaged_queue, is_found_where_a_queue_is_a_circle) {
    link_of(waiter).next = name_of(waiter);
    EXPECT_TRUE(leaving_finds_damage(waiter, false));
}

TEST_F(a_damaged_queue, is_found_where_a_bucket_is_a_circle) {
    link_of(holder).bucket_next = name_of(holder);
    // An entity in the same bucket that is not queued.
    std::uint64_t other = 100;
    const auto bucket = [](std::uint64_t number) { return (number * 0x9e37'79b9'7f4a'7c15) >> 52; };
    while (bucket(other) != bucket(1))
        ++other;
    EXPECT_TRUE(finds_damage([&](mapped_queue& queue) { (void)queue.is_contended({{entity(other)}}); }));
    EXPECT_TRUE(
        finds_damage([&](mapped_queue& queue) { (void)queue.enter({.instance = 1}, {{entity(other)}}); }));
}

TEST_F(a_damaged_queue, is_found_where_the_free_records_are_a_circle) {
    mapped_queue::wake_list list;
    mapped_queue(*memory).leave(last, false, list);
    memory->requests[last.number].next_record = last.number + 1;
    std::vector<entity> nine;
    for (std::uint64_t e = 10; e != 19; ++e)
        nine.emplace_back(e);
    EXPECT_TRUE(finds_damage([&](mapped_queue& queue) { (void)queue.enter({.instance = 1}, nine); }));
}

TEST_F(a_damaged_queue, is_found_where_the_records_of_a_request_are_a_circle) {
    memory->requests[holder.number].next_record = holder.number + 1;
    EXPECT_TRUE(leaving_finds_damage(holder, true));
}

TEST_F(a_damaged_queue, is_found_where_the_records_of_a_request_lead_to_another) {
    memory->requests[holder.number].next_record = waiter.number + 1;
    EXPECT_TRUE(leaving_finds_damage(holder, true));
}

TEST_F(a_damaged_queue, is_found_where_a_free_record_is_one_in_use) {
    memory->free_record = waiter.number + 1;
    EXPECT_TRUE(
        finds_damage([&](mapped_queue& queue) { (void)queue.enter({.instance = 1}, {{entity(9)}}); }));
}

TEST_F(a_damaged_queue, is_found_where_neighbours_do_not_name_each_other) {
    link_of(waiter).previous = name_of(last);
    EXPECT_TRUE(leaving_finds_damage(waiter, false));
}

TEST_F(a_damaged_queue, is_found_when_a_request_is_queued_after_a_last_link_that_has_a_successor) {
    link_of(last).next = name_of(holder);
    EXPECT_TRUE(
        finds_damage([&](mapped_queue& queue) { (void)queue.enter({.instance = 1}, {{entity(1)}}); }));
}

TEST_F(a_damaged_queue, is_found_by_a_holder_whose_request_is_another_now) {
    memory->requests[holder.number].arrival.store(77);
    EXPECT_TRUE(leaving_finds_damage(holder, true));
}

TEST_F(a_damaged_queue, is_found_by_a_holder_whose_request_is_not_granted_any_more) {
    memory->requests[holder.number].state.store(mapped::waiting);
    EXPECT_TRUE(leaving_finds_damage(holder, true));
}

TEST_F(a_damaged_queue, is_found_when_the_queues_are_rebuilt_from_requests_that_share_a_record) {
    memory->requests[waiter.number].next_record = last.number + 1;
    EXPECT_TRUE(finds_damage([](mapped_queue& queue) {
        mapped_queue::wake_list list;
        queue.rebuild(list);
    }));
}

TEST_F(a_damaged_queue, is_bounded_when_the_entities_of_requests_that_share_records_are_copied) {
    for (std::uint32_t i = 0; i != mapped::requests_max; ++i) {
        memory->requests[i].state.store(mapped::granted);
        memory->requests[i].next_record = (i + 1) % mapped::requests_max + 1;
        memory->requests[i].links_used = 8;
        memory->requests[i].first_record = 0;
    }
    memory->records_used = mapped::requests_max;
    std::vector<entity> entities;
    entities.reserve(mapped::links_max);
    const std::size_t room = entities.capacity();
    EXPECT_TRUE(finds_damage([&](mapped_queue& queue) {
        queue.for_each([&](std::uint32_t number) { (void)queue.copy_entities(number, entities); });
    }));
    EXPECT_EQ(entities.capacity(), room);
}

// Each word in use takes each value before all operations.
TEST_F(a_damaged_queue, stays_in_bounds_if_any_word_is_replaced) {
    mapped_queue::wake_list ignored;
    (void)enter({entity(5)}, 7);
    mapped_queue(*memory).reap_instance(7, ignored);  // a tombstone
    const auto with_news = enter({entity(5)});
    constexpr std::size_t records = 6 * sizeof(mapped::request);
    const auto original = std::make_unique<mapped::memory>();
    std::memcpy(static_cast<void*>(original.get()), memory.get(), sizeof(mapped::memory));
    std::vector<std::size_t> offsets;
    for (std::size_t at = offsetof(mapped::memory, arrivals); at != offsetof(mapped::memory, instances);
         at += 4)
        offsets.push_back(at);
    for (std::size_t at = 0; at != records; at += 4)
        offsets.push_back(offsetof(mapped::memory, requests) + at);
    for (const std::size_t at : offsets)
        for (const std::uint32_t value : hostile_values) {
            std::memcpy(static_cast<void*>(memory.get()), original.get(), sizeof(mapped::memory));
            std::memcpy(reinterpret_cast<std::byte*>(memory.get()) + at, &value, sizeof value);
            mapped_queue queue(*memory);
            mapped_queue::wake_list list;
            (void)queue.is_contended({{entity(1), entity(3), entity(5)}});
            (void)queue.enter({.instance = 2}, {{entity(1), entity(3), entity(4)}});
            queue.leave(holder, true, list);
            queue.leave(with_news, true, list);
            mapped_queue(*memory).leave(waiter, false, list);
            mapped_queue(*memory).reap_instance(2, list);
            mapped_queue(*memory).rebuild(list);
            (void)queue.has_waiter_on_processor(0);
            (void)queue.has_neighbour(last.number);
            ASSERT_LE(list.all().size(), mapped::requests_max);
        }
}

enum class end : unsigned char { well, by_sigbus, otherwise };

// Returns how a process ends.
end end_of(const std::function<void()>& body) {
    const process child(body);
    siginfo_t seen{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child.id()), &seen, WEXITED | WNOWAIT), 0);
    if (seen.si_code == CLD_EXITED) return seen.si_status == 0 ? end::well : end::otherwise;
    return seen.si_status == SIGBUS ? end::by_sigbus : end::otherwise;
}

std::atomic<int> handled{0};

class a_handler_of_sigbus : public a_damaged_map {
protected:
    // Touches a page of another, truncated file: a fault that is not ours.
    void touch_another_file() const {
        directory.write("other", std::string(4096, 'x'));
        const int file = ::open(directory.path_of("other").c_str(), O_RDWR | O_CLOEXEC);
        auto* const page = static_cast<volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
        std::filesystem::resize_file(directory.path_of("other"), 0);
        (void)page[0];
    }
};

TEST_F(a_handler_of_sigbus, lets_a_fault_elsewhere_end_the_process_as_before) {
    const end seen = end_of([&] {
        ::signal(SIGBUS, SIG_DFL);
        const auto mutex = open();
        touch_another_file();
    });
    EXPECT_EQ(seen, end::by_sigbus);
}

TEST_F(a_handler_of_sigbus, lets_a_fault_elsewhere_end_the_process_that_ignores_the_signal) {
    const end seen = end_of([&] {
        ::signal(SIGBUS, SIG_IGN);
        const auto mutex = open();
        ::raise(SIGBUS);
        touch_another_file();
    });
    EXPECT_EQ(seen, end::by_sigbus);
}

TEST_F(a_handler_of_sigbus, lets_a_signal_that_was_sent_end_the_process) {
    const end seen = end_of([&] {
        ::signal(SIGBUS, SIG_DFL);
        const auto mutex = open();
        ::raise(SIGBUS);
        fail_child("it survived");
    });
    EXPECT_EQ(seen, end::by_sigbus);
}

TEST_F(a_handler_of_sigbus, passes_on_to_the_handler_before_it) {
    const end seen = end_of([&] {
        struct sigaction before{};
        before.sa_sigaction = [](int, siginfo_t* what, void*) {
            handled.fetch_add(1);
            if (what->si_code > 0) ::_exit(handled.load() == 2 ? 0 : 1);
        };
        before.sa_flags = SA_SIGINFO;
        ::sigaction(SIGBUS, &before, nullptr);
        const auto mutex = open();
        ::raise(SIGBUS);
        auto held = mutex->lock(entity(1)).value();
        cut(0);
        if (held.unlock()) fail_child("the truncation was not noticed");
        if (handled.load() != 1) fail_child("a signal was lost, or was not its own");
        touch_another_file();
    });
    EXPECT_EQ(seen, end::well);
}

TEST_F(a_damaged_map, is_not_created_over_a_fifo_a_device_or_a_link_to_one) {
    ASSERT_EQ(::mkfifo(directory.path_of("map").c_str(), 0600), 0);
    EXPECT_EQ(try_to_open(in_haste()).error(), std::errc::no_such_device_or_address);
    std::filesystem::remove(directory.path_of("map"));
    std::filesystem::create_symlink("/dev/zero", directory.path_of("map"));
    EXPECT_EQ(try_to_open(in_haste()).error(), std::errc::no_such_device_or_address);
    std::filesystem::remove(directory.path_of("map"));
    std::filesystem::create_directory(directory.path_of("map"));
    EXPECT_FALSE(try_to_open(in_haste()));
}

}  // namespace
}  // namespace sluice::fsmutex
