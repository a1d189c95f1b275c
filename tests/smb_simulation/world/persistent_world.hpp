#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/server/journal/handle_journal.hpp"
#include "sluice/smb/server/journal/journal_memory.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

namespace sluice::smb_simulation {

inline constexpr smb::wire::lease_state all_caching =
    smb::wire::lease_state::read | smb::wire::lease_state::write | smb::wire::lease_state::handle;

/// A server whose share has continuous availability, in a process that can end at any moment.
class persistent : public testing::Test {
protected:
    using command = smb::wire::command;
    using create_args = smb::wire::create_args;
    using durable_flags = smb::wire::durable_flags;
    using file_id = smb::wire::file_id;
    using handle_journal = smb::server::handle_journal;
    using journal_memory = smb::server::journal_memory;
    using lease_state = smb::wire::lease_state;
    using lock_flags = smb::wire::lock_flags;
    using nt_status = smb::wire::nt_status;

    persistent()
        : where_((begin(), io::simulation_options{.seed = 1}), 1, &persistent::adjust),
          volume_(now_->volume),
          owner_(log_on(1, "u")) {}
    ~persistent() override {
        other_.reset();
        owner_.reset();
        past_.clear();
        where_.stop();
        where_.server.reset();
        volume_.reset();
        now_.reset();
    }

    struct shared {
        journal_memory memory{std::size_t{256} << 12};
        std::shared_ptr<handle_journal> journal;
        bool is_available = true;
        std::shared_ptr<vfs::volume> volume;
    };
    static void begin() { now_ = std::make_unique<shared>(); }
    static void adjust(smb::server::server_configuration& of) {
        auto& share = of.shares.back();
        if (now_->volume == nullptr) now_->volume = share.volume;
        auto opened = handle_journal::open(now_->memory.storage(), {.inode = 1});
        ASSERT_TRUE(opened.has_value());
        now_->journal = *std::move(opened);
        share.continuous_availability = now_->is_available;
        share.journal = now_->journal;
        share.volume = now_->volume;
        if (now_->journal->origin() == smb::server::journal_origin::fresh) now_->journal->begin_service();
    }

    [[nodiscard]] std::unique_ptr<compliant_client> log_on(std::uint64_t seed, std::string_view user) {
        if (user != "u") where_.admit(std::vector<std::string>{"u", std::string(user)});
        auto one = std::make_unique<compliant_client>(where_, seed);
        EXPECT_EQ(one->log_on(user, "p"), nt_status::success);
        EXPECT_EQ(one->connect_tree("files"), nt_status::success);
        return one;
    }

    // The process ends without a warning, and another one begins.
    void kill_and_restart() {
        now_->journal->freeze();
        restart();
    }
    // The process ends in order.
    void restart() {
        lose(owner_);
        lose(other_);
        where_.stop();
        where_.server.reset();
        smb::server::server_configuration again;
        again.signing = smb::server::protection::offered;
        again.shares.push_back({});
        again.shares.back().name = "files";
        adjust(again);
        where_.server = std::make_unique<smb::server::smb_server>(
            smb::server::server_dependencies{.loop = *where_.loop,
                                             .clock = where_.clock,
                                             .random = where_.secrets,
                                             .accounts = where_.accounts,
                                             .log = where_.log},
            std::move(again));
        where_.server->restore();
        EXPECT_TRUE(where_.server->start({}));
    }

    [[nodiscard]] static create_args wanted(lease_state caching = lease_state::none,
                                            std::byte guid = std::byte{7}) {
        create_args how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::none;
        if (caching != lease_state::none) {
            how.oplock_level = smb::wire::oplock_level::lease;
            how.contexts.lease.emplace();
            how.contexts.lease->key.bytes[0] = guid;
            how.contexts.lease->state = caching;
            how.contexts.lease->v2.emplace();
        }
        how.contexts.durable_v2.emplace();
        how.contexts.durable_v2->flags = durable_flags::persistent;
        how.contexts.durable_v2->create_guid.bytes[0] = guid;
        return how;
    }
    [[nodiscard]] static create_args back(create_args how, const file_id& file) {
        how.contexts.durable_reconnect_v2.emplace();
        how.contexts.durable_reconnect_v2->file = file;
        how.contexts.durable_reconnect_v2->create_guid = how.contexts.durable_v2->create_guid;
        how.contexts.durable_reconnect_v2->flags = how.contexts.durable_v2->flags;
        how.contexts.durable_v2.reset();
        return how;
    }
    [[nodiscard]] static create_args plain() {
        create_args how = compliant_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::none;
        return how;
    }
    [[nodiscard]] static nt_status lock(compliant_client& by, const file_id& file, std::uint64_t offset,
                                        lock_flags how = lock_flags::exclusive | lock_flags::fail_immediately,
                                        std::uint64_t length = 10) {
        const auto element =
            smb::wire::encode_lock_element({.offset_bytes = offset, .length_bytes = length, .flags = how});
        const smb::wire::lock_args args{.file = file,
                                        .elements = smb::wire::lock_list(std::span(&element, 1))};
        return by.call(command::lock, args).status();
    }
    [[nodiscard]] static nt_status close(compliant_client& by, const file_id& file) {
        return by.call(command::close, smb::wire::close_args{.file = file}).status();
    }
    [[nodiscard]] static nt_status write(compliant_client& by, const file_id& file, std::string_view text,
                                         std::uint64_t offset = 0) {
        const auto data = std::as_bytes(std::span(text));
        return by
            .call(command::write, smb::wire::write_args{.file = file, .offset_bytes = offset, .data = data})
            .status();
    }
    template <class Information>
    [[nodiscard]] static nt_status change(compliant_client& by, const file_id& file,
                                          smb::wire::file_information_class what, const Information& wanted) {
        std::array<std::byte, 512> room{};
        byte_writer writer(room);
        (void)encode(writer, wanted);
        return by
            .call(command::set_info,
                  smb::wire::set_info_args{.type = smb::wire::info_type::file,
                                           .information_class = static_cast<std::uint8_t>(what),
                                           .file = file,
                                           .input = *writer.finish()})
            .status();
    }
    [[nodiscard]] static nt_status rename(compliant_client& by, const file_id& file,
                                          const std::string& target,
                                          smb::wire::rename_flags how = smb::wire::rename_flags::none) {
        return change(by, file, smb::wire::file_information_class::rename_ex,
                      smb::wire::rename_information_ex{.flags = how, .target = target});
    }
    [[nodiscard]] static nt_status set_deletion(compliant_client& by, const file_id& file, bool is_wanted) {
        return change(by, file, smb::wire::file_information_class::disposition,
                      smb::wire::disposition_information{.delete_on_close = is_wanted});
    }
    [[nodiscard]] static create_args existing() {
        create_args how = plain();
        how.disposition = smb::wire::create_disposition::open;
        return how;
    }
    // The client loses its connection. Its destructor would let all time pass.
    void lose(std::unique_ptr<compliant_client>& one) {
        if (one == nullptr) return;
        one->close_connection();
        past_.push_back(std::move(one));
    }
    void lose_owner() { lose(owner_); }

    static inline std::unique_ptr<shared> now_;
    world where_;
    std::shared_ptr<vfs::volume> volume_;
    std::unique_ptr<compliant_client> owner_;
    std::unique_ptr<compliant_client> other_;
    std::vector<std::unique_ptr<compliant_client>> past_;
};

}  // namespace sluice::smb_simulation
