#include "sluice/smb/server/command/command.hpp"

#include <array>

namespace sluice::smb::server {

namespace {

// By command code, as far as there are codes.
constexpr std::array<command_rule, 0x13> rules{{
    {.serve = serve_negotiate, .needs_session = false, .needs_tree = false},
    {.serve = serve_session_setup, .needs_session = false, .needs_tree = false},
    {.serve = serve_logoff, .needs_tree = false, .allowed_when_expired = true},
    {.serve = serve_tree_connect, .needs_tree = false},
    {.serve = serve_tree_disconnect},
    {.serve = serve_create},
    {.serve = serve_close, .allowed_when_expired = true},
    {.serve = serve_flush},
    {.serve = serve_read},
    {.serve = serve_write},
    {.serve = serve_lock, .allowed_when_expired = true},
    {.serve = serve_ioctl},
    {},  // CANCEL
    {.serve = serve_echo, .needs_session = false, .needs_tree = false, .allowed_when_expired = true},
    {.serve = serve_query_directory},
    {.serve = serve_change_notify},
    {.serve = serve_query_info},
    {.serve = serve_set_info},
    {.serve = serve_oplock_break, .allowed_when_expired = true},
}};

}  // namespace

const command_rule* rule_of(wire::command code) noexcept {
    const auto index = static_cast<std::size_t>(code);
    if (index >= rules.size() or rules[index].serve == nullptr) return nullptr;
    return &rules[index];
}

}  // namespace sluice::smb::server
