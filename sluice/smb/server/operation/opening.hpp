#pragma once

#include "sluice/smb/server/file/peer_claims.hpp"
#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/wire/create/create.hpp"

namespace sluice::smb::server {

/// What the reply to a CREATE tells of the file.
struct reply_facts {
    vfs::metadata status{};
    wire::maximal_access_answer maximal_access{};  // if the client asks for it
};
/// Asks for it. Touches only the node and its volume. Errors: those of node::status. Blocks: for the file
/// system.
[[nodiscard]] std::expected<reply_facts, wire::nt_status> facts_for_reply(
    const accessor& by, vfs::node& node, const wire::create_args& args) noexcept;
/// The same for a caller that has just asked for the status.
[[nodiscard]] reply_facts facts_for_reply(const accessor& by, vfs::node& node, const wire::create_args& args,
                                          const vfs::metadata& status) noexcept;

/// One CREATE of a file, directory or stream under way ([MS-SMB2] 3.3.5.9, [MS-FSA] 2.1.5.1): finds it or
/// makes it, and asks everybody who has a say. Lives in the command's frame.
///
/// Each step says `success`, or why not. Between finding the file and registering the open nothing may
/// suspend except make_way() and settle_with_peers(), after which everything is checked again. Nothing
/// suspends between registering the open and keep().
class opening {
public:
    opening(request& r, const wire::create_args& args, file_name name) noexcept;
    opening(const opening&) = delete;
    opening& operator=(const opening&) = delete;
    /// Without keep(), undoes it all: ends the open, and removes the created file.
    ~opening();

    /// Does it all; afterwards fresh() is registered. When limits::open_attempts_max or caching_waits_max is
    /// reached, it fails with the status of the last attempt, or SHARING_VIOLATION. Suspends: while others
    /// give up what they cache.
    [[nodiscard]] io::task<wire::nt_status> run() noexcept;

    /// The reply is complete: the open is its client's.
    void keep() noexcept { is_kept_ = true; }

    [[nodiscard]] const std::shared_ptr<open>& fresh() const noexcept { return fresh_; }
    [[nodiscard]] wire::create_action action() const noexcept { return action_; }
    /// What the reply tells of the file.
    [[nodiscard]] const reply_facts& facts() const noexcept { return facts_; }

private:
    enum class step : std::uint8_t { done, again, waited, failed };

    [[nodiscard]] wire::nt_status find() noexcept;
    [[nodiscard]] wire::nt_status find_stream() noexcept;
    [[nodiscard]] wire::nt_status check_existing() noexcept;
    [[nodiscard]] wire::nt_status check_kind() const noexcept;
    [[nodiscard]] wire::nt_status check_lease_key() const noexcept;
    [[nodiscard]] wire::nt_status authorise() noexcept;
    [[nodiscard]] wire::nt_status check_read_only() const noexcept;
    [[nodiscard]] step take_over_from_instances() noexcept;
    [[nodiscard]] bool streams_allow(wire::access_mask needs) const noexcept;
    [[nodiscard]] wire::nt_status check_making(const vfs::found_node& directory, bool makes_directory) const;
    [[nodiscard]] bool is_dangling_link() const noexcept;
    [[nodiscard]] bool looks_in_any_case() noexcept;
    [[nodiscard]] wire::nt_status make() noexcept;
    [[nodiscard]] wire::nt_status dress(const vfs::found_node& directory) noexcept;
    [[nodiscard]] result<void> secure(const vfs::found_node& directory);
    [[nodiscard]] wire::nt_status reserve() noexcept;
    [[nodiscard]] result<void> drop_streams();
    [[nodiscard]] wire::nt_status overwrite() noexcept;
    [[nodiscard]] wire::nt_status open_data() noexcept;
    [[nodiscard]] wire::nt_status ask_facts() noexcept;
    [[nodiscard]] wire::nt_status register_open() noexcept;
    void undo() noexcept;
    [[nodiscard]] sharing wanted() const noexcept;
    [[nodiscard]] io::task<step> make_way() noexcept;
    [[nodiscard]] result<peer_sign> claim(peer_servers& peers);
    [[nodiscard]] step step_after(const result<peer_sign>& in_the_way) noexcept;
    [[nodiscard]] io::task<step> settle_with_peers(peer_servers& peers) noexcept;
    [[nodiscard]] io::task<step> attempt() noexcept;

    [[nodiscard]] bool wants(wire::create_options option) const noexcept;
    [[nodiscard]] bool may_create() const noexcept;
    [[nodiscard]] bool overwrites() const noexcept;
    void explain(wire::access_mask wanted) const;

    request& r_;
    const wire::create_args& args_;
    file_name name_;
    vfs::volume& volume_;
    vfs::name_match match_;
    vfs::node_ptr node_;                  // null: there is none
    std::optional<vfs::metadata> found_;  // its status when found or made, until we change it
    std::shared_ptr<file_state> file_;
    std::shared_ptr<file_state> base_;  // if it is a stream, and other servers are to know
    peer_claim claim_;                  // to file_
    peer_claim claim_to_base_;
    wire::access_mask granted_ = wire::access_mask::none;
    wire::create_action action_ = wire::create_action::opened;
    wire::nt_status status_ = wire::nt_status::success;
    reply_facts facts_;
    std::shared_ptr<open> fresh_;
    bool is_kept_ = false;
    bool has_waited_ = false;
    unsigned peer_attempts_ = 0;
};

}  // namespace sluice::smb::server
