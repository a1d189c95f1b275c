#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>

#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "tests/smb_simulation/world/persistent_world.hpp"

// The server is killed before each change of the journal in a script. Acknowledged states must be
// there afterwards, released ones must not. The request in progress may have had its effect or not.

namespace sluice::smb_simulation {
namespace {

using smb::wire::file_information_class;

class persistent_kills : public persistent, public testing::WithParamInterface<std::uint32_t> {
protected:
    // The state of the file and its open that clients can observe.
    struct state {
        bool is_open = false;
        std::string name = "f";
        std::set<std::uint64_t> locks{};
        lease_state caching = lease_state::none;
        bool is_delete_pending = false;
        std::string data = "none";

        [[nodiscard]] friend bool operator==(const state&, const state&) = default;
        friend void PrintTo(const state& of, std::ostream* to) {
            *to << (of.is_open ? "open " : "closed ") << of.name << " caching "
                << static_cast<unsigned>(of.caching) << (of.is_delete_pending ? " pending " : " ") << of.data;
            for (const std::uint64_t each : of.locks)
                *to << " lock " << each;
        }
    };
    static constexpr std::array<std::uint64_t, 3> places{0, 10, 100};

    // Carries out one step, whose effect on the state is `change`. Returns false after the kill.
    // Neither the journal nor the volume changes after it.
    template <class Step, class Change>
    [[nodiscard]] bool step(Step&& carry_out, Change&& change) {
        before_ = after_;
        change(after_);
        const nt_status status = carry_out();
        if (now_->journal->is_frozen()) return false;
        EXPECT_EQ(status, nt_status::success);
        before_ = after_;
        return true;
    }
    [[nodiscard]] static bool is_killed() noexcept { return now_->journal->is_frozen(); }
    [[nodiscard]] static create_args existing() {
        create_args how = plain();
        how.disposition = smb::wire::create_disposition::open;
        return how;
    }
    template <class Information>
    [[nodiscard]] nt_status set(file_information_class which, const Information& information) {
        std::array<std::byte, 256> room{};
        byte_writer writer(room);
        (void)encode(writer, information);
        const auto input = writer.finish();
        const smb::wire::set_info_args args{.type = smb::wire::info_type::file,
                                            .information_class = static_cast<std::uint8_t>(which),
                                            .file = file_,
                                            .input = {input->data(), input->size()}};
        return owner_->call(command::set_info, args).status();
    }
    [[nodiscard]] nt_status set_deletion(bool is_pending) {
        return set(file_information_class::disposition,
                   smb::wire::disposition_information{.delete_on_close = is_pending});
    }
    // The owner waits for a lock, which the other client's unlock grants.
    [[nodiscard]] nt_status lock_late() {
        EXPECT_EQ(lock(*other_, theirs_, 100), nt_status::success);
        const auto element = smb::wire::encode_lock_element(
            {.offset_bytes = 100, .length_bytes = 10, .flags = lock_flags::exclusive});
        const std::uint64_t waiting = owner_->send(
            command::lock,
            smb::wire::lock_args{.file = file_, .elements = smb::wire::lock_list(std::span(&element, 1))});
        EXPECT_FALSE(owner_->is_answered(waiting));
        EXPECT_EQ(lock(*other_, theirs_, 100, lock_flags::unlock), nt_status::success);
        return owner_->answer_to(waiting).status();
    }

    void run_script() {
        constexpr lease_state cached = lease_state::read | lease_state::handle;
        const auto open = [&] {
            file_ = owner_->create("f", wanted(cached)).file;
            return nt_status::success;
        };
        (void)(step(open,
                    [](state& s) {
                        s.is_open = true, s.caching = lease_state::read | lease_state::handle;
                    }) and
               step([&] { return lock(*owner_, file_, 0); }, [](state& s) { s.locks.insert(0); }) and
               step([&] { return lock(*owner_, file_, 10); }, [](state& s) { s.locks.insert(10); }) and
               step([&] { return lock(*owner_, file_, 0, lock_flags::unlock); },
                    [](state& s) { s.locks.erase(0); }) and
               step([&] { return write(*owner_, file_, "mine", 50); }, [](state& s) { s.data = "mine"; }) and
               step([&] { return write(*other_, theirs_, "news", 50); },
                    [](state& s) { s.data = "news", s.caching = lease_state::none; }) and
               step([&] { return set_deletion(true); }, [](state& s) { s.is_delete_pending = true; }) and
               step([&] { return set_deletion(false); }, [](state& s) { s.is_delete_pending = false; }) and
               step([&] { return lock_late(); }, [](state& s) { s.locks.insert(100); }) and
               step(
                   [&] {
                       return set(file_information_class::rename,
                                  smb::wire::rename_information{.target = "g"});
                   },
                   [](state& s) { s.name = "g"; }) and
               step([&] { return lock(*owner_, file_, 10, lock_flags::unlock); },
                    [](state& s) { s.locks.erase(10); }) and
               step([&] { return close(*owner_, file_); },
                    [](state& s) {
                        s.is_open = false;
                        s.locks.clear();
                    }));
    }

    // Before the reconnect, no other client is admitted to the file of an open.
    [[nodiscard]] state observe() {
        state seen;
        seen.name.clear();
        other_ = log_on(2, "v");
        owner_ = log_on(1, "u");
        for (const std::string name : {"f", "g"}) {
            const nt_status status = other_->try_create(name, existing());
            if (status == nt_status::object_name_not_found) continue;
            EXPECT_TRUE(seen.name.empty()) << "the file has one name";
            seen.name = name;
            // A pending removal keeps other clients out as well.
            seen.is_open = status == nt_status::file_not_available or status == nt_status::delete_pending;
            EXPECT_TRUE(seen.is_open or status == nt_status::success);
        }
        create_args how = existing();
        if (seen.is_open) how = back(wanted(lease_state::read | lease_state::handle), file_);
        const auto again = owner_->create(seen.name, how);
        if (again.contexts.lease) seen.caching = again.contexts.lease->state;
        if (seen.is_open) observe_open(again.file, seen);
        const auto read = owner_->call(
            command::read, smb::wire::read_args{.file = again.file, .offset_bytes = 50, .length_bytes = 4});
        EXPECT_EQ(read.status(), nt_status::success);
        const auto decoded = smb::wire::decode_read_reply(read.message());
        if (decoded)
            seen.data.assign(reinterpret_cast<const char*>(decoded->data.data()), decoded->data.size());
        return seen;
    }
    void observe_open(const file_id& file, state& seen) {
        seen.is_delete_pending = other_->try_create(seen.name, existing()) == nt_status::delete_pending;
        for (const std::uint64_t where : places) {
            const nt_status status = lock(*owner_, file, where);
            if (status == nt_status::lock_not_granted)
                seen.locks.insert(where);
            else
                EXPECT_EQ(lock(*owner_, file, where, lock_flags::unlock), nt_status::success);
        }
    }

    file_id file_{};
    file_id theirs_{};
    state before_;
    state after_;
};

constexpr std::uint32_t more_than_all_changes = 30;

TEST_P(persistent_kills, acknowledged_states_are_restored_whenever_the_server_is_killed) {
    other_ = log_on(2, "v");
    theirs_ = other_->create("f", plain()).file;
    ASSERT_EQ(write(*other_, theirs_, "none", 50), nt_status::success);
    dynamic_cast<vfs::memory_volume&>(*volume_).set_faults({.is_stopped = &persistent_kills::is_killed});
    now_->journal->freeze_before(GetParam());
    run_script();
    if (GetParam() == more_than_all_changes)
        EXPECT_FALSE(now_->journal->is_frozen()) << "the script is longer";
    kill_and_restart();
    const state seen = observe();
    EXPECT_TRUE(seen == before_ or seen == after_)
        << testing::PrintToString(seen) << "; before the kill: " << testing::PrintToString(before_)
        << "; or: " << testing::PrintToString(after_);
}

INSTANTIATE_TEST_SUITE_P(changes, persistent_kills, testing::Range(1U, more_than_all_changes + 1));

}  // namespace
}  // namespace sluice::smb_simulation
