#pragma once

#include "sluice/smb/server/file/naming_state.hpp"
#include "sluice/smb/server/file/peer_claims.hpp"
#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/server/operation/open_calls.hpp"

namespace sluice::smb::server {

/// The options that FileModeInformation reports ([MS-FSCC] 2.4).
inline constexpr wire::create_options shown_as_mode =
    wire::create_options::write_through | wire::create_options::sequential_only |
    wire::create_options::no_intermediate_buffering | wire::create_options::synchronous_io_alert |
    wire::create_options::synchronous_io_nonalert | wire::create_options::delete_on_close;

/// Returns which data an open with these rights reads and writes.
[[nodiscard]] inline vfs::data_access data_access_of(wire::access_mask access) noexcept {
    return {.read = wire::has_any(access, wire::access_mask::read_data | wire::access_mask::execute),
            .write = wire::has_any(access, wire::access_mask::write_data | wire::access_mask::append_data)};
}

/// One CREATE of a file, directory or stream in progress ([MS-SMB2] 3.3.5.9,
/// [MS-FSA] 2.1.5.1): finds or creates the file, and respects share modes, leases and other
/// servers. Lives in the command's frame.
///
/// It works in rounds (create_round.hpp). A round looks the file up, joins it with an entry for its
/// share mode, prepares it, and commits the entry. Other loops run during its calls, and between
/// its sections of the file; the protocol of docs/algorithms/open_protocol.md shows the round what
/// has changed. A round that has to wait for others first releases everything, and the next one
/// starts from the beginning.
///
/// Invariants:
///   1. A round begins without an open, and so does every wait for another client.
///   2. Until register_open(), the open has no session. From then on, the session may end it:
///   before the commit, the CREATE cleans up; afterwards, it is an open like any other.
///   3. An open that is going to truncate the file counts as a writer of it (`emptying_`).
///   4. The granted access is within the access that the tree allows.
class create_operation {
public:
    create_operation(request& r, const wire::create_args& args, file_name name) noexcept;
    create_operation(const create_operation&) = delete;
    create_operation& operator=(const create_operation&) = delete;
    /// Without keep(), undoes the CREATE: ends the open, and removes the created file.
    ~create_operation();

    /// Runs all rounds; afterwards fresh() is committed. When limits::open_attempts_max or
    /// caching_waits_max is reached, it fails with the status of the last round, or
    /// SHARING_VIOLATION. Suspends: until other clients have acknowledged breaks, and for the
    /// file system.
    [[nodiscard]] io::task<wire::nt_status> run() noexcept;

    /// Returns the status for the client after run() has failed with `why`. If a symbolic link with
    /// a missing target is the reason, it is STOPPED_ON_SYMLINK, with the link in the request's
    /// error data. Suspends.
    [[nodiscard]] io::task<wire::nt_status> status_for_client(wire::nt_status why) noexcept;

    /// The reply is complete: the open is its client's.
    void keep() noexcept { is_kept_ = true; }

    /// It may have ended.
    [[nodiscard]] const std::shared_ptr<open>& fresh() const noexcept { return fresh_; }
    [[nodiscard]] wire::create_action action() const noexcept { return action_; }
    /// The facts about the file in the reply.
    [[nodiscard]] const reply_facts& facts() const noexcept { return facts_; }
    /// The caching that it was granted, as the reply says it.
    [[nodiscard]] const caching_reply& caching() const noexcept { return caching_; }

private:
    enum class step : std::uint8_t { done, again, waited, failed };

    [[nodiscard]] io::task<step> attempt() noexcept;
    [[nodiscard]] io::task<step> look_up(create_round& round) noexcept;
    [[nodiscard]] io::task<step> use_existing(create_round& round) noexcept;
    [[nodiscard]] io::task<step> create(create_round& round) noexcept;
    [[nodiscard]] std::expected<created_node, wire::nt_status> create_seen(const creation& wanted,
                                                                           own_change& seen) noexcept;
    [[nodiscard]] io::task<step> join(create_round& round) noexcept;
    [[nodiscard]] io::task<step> join_created() noexcept;
    // Not in the frame of attempt(), which would not fit into a block of the frame pool.
    [[nodiscard, gnu::noinline]] io::task<step> complete(create_round& round) noexcept;
    [[nodiscard]] io::task<step> wait_for(create_round& round,
                                          one_shot_event<wire::nt_status>& woken) noexcept;
    [[nodiscard]] io::task<step> wait_for_caching(create_round& round, caching_wait& blocked) noexcept;
    [[nodiscard]] io::task<step> commit() noexcept;
    [[nodiscard]] std::optional<step> try_commit(bool may_cache) noexcept;
    [[nodiscard]] std::optional<step> step_of(open_protocol::verdict found) noexcept;
    [[nodiscard]] io::task<wire::nt_status> prepare() noexcept;
    void begin_facts() noexcept;
    [[nodiscard]] bool are_facts_outdated() const noexcept;

    [[nodiscard]] wire::nt_status check_share() noexcept;
    [[nodiscard]] io::task<step> refused_by_removal(create_round& round) noexcept;
    [[nodiscard]] wire::nt_status check_existing() noexcept;
    [[nodiscard]] wire::nt_status check_kind() const noexcept;
    [[nodiscard]] wire::nt_status check_lease_key() const noexcept;
    [[nodiscard]] wire::nt_status authorise() noexcept;
    [[nodiscard]] wire::nt_status check_read_only() const noexcept;
    [[nodiscard]] step take_over_from_instances() noexcept;
    [[nodiscard]] wire::nt_status check_creation() noexcept;
    [[nodiscard]] bool may_create_stream() noexcept;
    [[nodiscard]] bool matches_any_case() noexcept;
    [[nodiscard]] wire::access_mask creator_rights() const noexcept;
    [[nodiscard]] bool may_share_new_stream(file_state& file) const noexcept;
    [[nodiscard]] wire::access_mask desired() const noexcept;
    [[nodiscard]] wire::access_mask privileged() const noexcept;
    [[nodiscard]] step fail(wire::nt_status why) noexcept;
    [[nodiscard]] step refused_creation(wire::nt_status why) noexcept;
    [[nodiscard]] wire::nt_status begin_open() noexcept;
    [[nodiscard]] wire::nt_status status_in_grace() const noexcept;
    void take_node() noexcept;
    void discard_found() noexcept;
    [[nodiscard]] wire::nt_status register_open() noexcept;
    void leave() noexcept;
    void undo() noexcept;
    void cancel_claims() noexcept;
    [[nodiscard]] sharing wanted() const noexcept;
    [[nodiscard]] result<share_mode_lock_byte> claim(peer_servers& peers);
    [[nodiscard]] io::task<step> check_peer_servers(peer_servers& peers) noexcept;

    [[nodiscard]] vfs::follow_links links() const noexcept;
    [[nodiscard]] vfs::fs_domain& domain_of_lookup() const noexcept;
    [[nodiscard]] bool wants(wire::create_options option) const noexcept;
    [[nodiscard]] bool may_create() const noexcept;
    [[nodiscard]] bool overwrites() const noexcept;
    [[nodiscard]] bool makes_directory() const noexcept;
    void explain(wire::access_mask wanted) const;

    request& r_;
    const wire::create_args& args_;
    file_name name_;
    vfs::volume& volume_;
    vfs::name_match match_;
    bool is_beyond_mount_ = false;     // the path leads into another file system
    lookup_result found_;              // by the last lookup; its node moves to the open
    std::uint64_t changed_files_ = 0;  // as counted before the last lookup
    bool is_status_current_ = true;    // found_.status was current when the open joined the file
    std::shared_ptr<file_state> file_;
    peer_claim claim_;          // to file_
    peer_claim claim_to_base_;  // to its base, if it is a stream
    wire::access_mask granted_ = wire::access_mask::none;
    wire::create_action action_ = wire::create_action::opened;
    wire::nt_status status_ = wire::nt_status::success;
    reply_facts facts_;
    std::uint32_t facts_changes_ = 0;  // file_state::ended_changes() when they were asked for
    // Naming_state::changes() then; until then, when the file was looked up.
    std::uint64_t facts_names_ = 0;
    std::shared_ptr<open> fresh_;  // joining, then committed
    caching_reply caching_;
    bool is_committed_ = false;

    // While the open is going to truncate the file, it counts as a writer: other opens are granted
    // no read caching.
    class emptying {
    public:
        emptying(const file_section& held, open& of) noexcept : of_(of) {
            ++of_.in_file(held).pending_writes;
            of_.file->begin_write(held);
        }
        emptying(const emptying&) = delete;
        emptying& operator=(const emptying&) = delete;
        ~emptying() {
            const file_section held(*of_.file);
            --of_.in_file(held).pending_writes;
            of_.file->end_write(held);
        }

    private:
        open& of_;
    };
    std::optional<emptying> emptying_;
    bool is_kept_ = false;
    bool has_waited_ = false;
    unsigned peer_attempts_ = 0;
};

}  // namespace sluice::smb::server
