#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

/// Every session of the server by its ID ([MS-SMB2] 3.3.1.5, GlobalSessionTable).
/// Invariant: a session in the table has the ID that it is found by.
/// Thread safety: under the server's latch. Allocates: a node per session.
class session_table {
public:
    /// The IDs follow `id_before`.
    explicit session_table(std::uint64_t id_before) noexcept : last_id_(id_before) {}
    session_table(const session_table&) = delete;
    session_table& operator=(const session_table&) = delete;

    /// The ID for the next session that add() is given.
    [[nodiscard]] std::uint64_t next_id() const noexcept { return last_id_ + 1; }
    void add(const std::shared_ptr<session>& fresh);
    /// Null if there is none.
    [[nodiscard]] std::shared_ptr<session> find(std::uint64_t id) const noexcept;
    void remove(std::uint64_t id) noexcept { sessions_.erase(id); }
    /// All sessions of a session's user from the same client, the session itself among them, in the order in
    /// which they were made. Complexity: O(n) in sessions.
    [[nodiscard]] std::vector<session*> alike(const session& one) const;

    [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }
    [[nodiscard]] auto begin() const noexcept { return sessions_.begin(); }
    [[nodiscard]] auto end() const noexcept { return sessions_.end(); }

private:
    std::unordered_map<std::uint64_t, std::shared_ptr<session>> sessions_;
    std::uint64_t last_id_;
};

}  // namespace sluice::smb::server
