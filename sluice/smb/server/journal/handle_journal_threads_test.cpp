// The handle journal, used by several threads at once.

#include <gtest/gtest.h>

#include <set>

#include "sluice/smb/server/core/threads_testing.hpp"
#include "sluice/smb/server/journal/handle_journal.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_memory.hpp"
#include "sluice/smb/server/journal/journal_testing.hpp"

namespace sluice::smb::server {
namespace {

constexpr std::size_t threads = 4;
constexpr std::size_t rounds = 60;
constexpr std::size_t kept_per_thread = 40;

TEST(handle_journal, of_several_threads_has_the_last_record_of_each_slot) {
    journal_memory memory(journal_format::header_bytes + 512 * journal_format::slot_bytes);
    const auto journal = handle_journal::open(memory.storage(), {}).value();
    journal->begin_service();
    std::array<std::vector<handle_journal::slot>, threads> kept;
    run_at_once(threads, [&](std::size_t number) {
        for (std::size_t i = 0; i != rounds; ++i) {
            auto slot = journal->reserve();
            ASSERT_TRUE(slot.has_value());
            for (const std::size_t change : {1000, 2000, 3000})
                EXPECT_TRUE(slot->store(owned_record(change + number * 100 + i).record));
            if (i % 3 == 0) slot->clear();
            if (i < kept_per_thread) kept[number].push_back(*std::move(slot));
        }
    });
    journal->freeze();
    std::set<std::uint64_t> found;
    for (const auto& each : handle_journal::open(memory.storage(), {}).value()->take_recovered()) {
        EXPECT_TRUE(each.record == owned_record(each.record.open_number).record);
        found.insert(each.record.open_number);
    }
    std::set<std::uint64_t> expected;
    for (std::size_t number = 0; number != threads; ++number)
        for (std::size_t i = 0; i != kept_per_thread; ++i)
            if (i % 3 != 0) expected.insert(3000 + number * 100 + i);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(journal->slots_in_use(), threads * kept_per_thread);
}

TEST(handle_journal, gives_each_slot_to_one_thread) {
    journal_memory memory(journal_format::header_bytes + 512 * journal_format::slot_bytes);
    const auto journal = handle_journal::open(memory.storage(), {}).value();
    std::array<std::vector<handle_journal::slot>, threads> reserved;
    run_at_once(threads, [&](std::size_t number) {
        while (auto slot = journal->reserve())
            reserved[number].push_back(*std::move(slot));
    });
    std::set<std::uint32_t> all;
    std::size_t count = 0;
    for (const auto& each : reserved)
        for (const auto& slot : each) {
            all.insert(slot.index());
            ++count;
        }
    EXPECT_EQ(count, 512U);
    EXPECT_EQ(all.size(), 512U);
}

}  // namespace
}  // namespace sluice::smb::server
