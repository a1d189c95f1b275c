#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/guid.hpp"

namespace sluice::smb::wire {

/// The context handle of an object that a client has opened, [C706] 14.3.12.
struct rpc_handle {
    le32 attributes{};  //  0
    guid id{};          //  4
    [[nodiscard]] friend bool operator==(const rpc_handle&, const rpc_handle&) noexcept = default;
};
static_assert(sizeof(rpc_handle) == 20);

/// An object that a client has open.
struct rpc_object {
    enum class kind : std::uint8_t { policy, sam_server, sam_domain, sam_builtin, sam_user };

    kind is = kind::policy;
    std::uint32_t granted = 0;  ///< rights
    std::uint32_t number = 0;   ///< the relative ID of a user
};

/// The objects that the client of one pipe has open. A handle is valid on the pipe that opened it
/// alone, and its ID is random.
/// Invariant: at most handles_max objects. Thread safety: that of its pipe. Allocates: an entry for
/// each object.
class rpc_handle_table {
public:
    static constexpr std::size_t handles_max = 64;

    /// Opens an object with a random ID. Returns std::nullopt if there are too many.
    [[nodiscard]] std::optional<rpc_handle> add(const guid& id, const rpc_object& opened);
    /// Returns an object of that kind; std::nullopt if there is no such object.
    [[nodiscard]] std::optional<rpc_object> find(const rpc_handle& of,
                                                 rpc_object::kind wanted) const noexcept;
    /// The same for an object of any kind.
    [[nodiscard]] std::optional<rpc_object> find(const rpc_handle& of) const noexcept;
    /// Returns whether there was such an object.
    [[nodiscard]] bool remove(const rpc_handle& closed) noexcept;
    /// Returns the memory of the objects.
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return entries_.capacity() * sizeof(entry); }

private:
    struct entry {
        guid id;
        rpc_object object;
    };
    std::vector<entry> entries_;
};

}  // namespace sluice::smb::wire
