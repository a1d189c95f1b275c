#pragma once

#include <span>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/client/connection.hpp"

namespace sluice::smb::client {

/// Connects to the first of a server's addresses that answers, and negotiates. Errors: those of the
/// last address; those of connection::open(). Suspends: at most connection_options::connect_timeout
/// for each address.
[[nodiscard]] io::task<outcome<not_null_ptr<connection>>> dial(dependencies deps,
                                                               std::span<const io::socket_address> addresses,
                                                               connection_options options) noexcept;

}  // namespace sluice::smb::client
