#include "sluice/smb/server/metadata/user_sids.hpp"

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

namespace {

// FNV-1a. The administrator chooses the names, so an attacker cannot search for two that collide.
[[nodiscard]] std::uint64_t hash_of(std::string_view name, std::uint64_t seed) noexcept {
    std::uint64_t hash = seed;
    for (const char each : name)
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x0000'0100'0000'01b3ULL;
    return hash ^ hash >> 29;
}

[[nodiscard]] constexpr std::uint32_t high_half(std::uint64_t value) noexcept {
    return static_cast<std::uint32_t>(value >> 32);
}
[[nodiscard]] constexpr std::uint32_t low_half(std::uint64_t value) noexcept {
    return static_cast<std::uint32_t>(value);
}

}  // namespace

wire::sid sid_of(const user_identity& user) {
    if (user.is_anonymous) return wire::sid_anonymous;
    if (user.is_guest) return wire::sid_guests;
    const std::string name = fold(user.name);
    const std::uint64_t front = hash_of(name, 0xcbf2'9ce4'8422'2325ULL);
    const std::uint64_t back = hash_of(name, 0x6c62'272e'07bb'0142ULL);
    return {5, {21, high_half(front), low_half(front), high_half(back), low_half(back)}};
}

wire::sid sid_of_server(std::string_view name) {
    const std::string folded = fold(name);
    const std::uint64_t front = hash_of(folded, 0xcbf2'9ce4'8422'2325ULL);
    const std::uint64_t back = hash_of(folded, 0x6c62'272e'07bb'0142ULL);
    return {5, {21, high_half(front), low_half(front), high_half(back)}};
}

std::vector<wire::sid> token_of(const user_identity& user, const std::optional<vfs::acting_user>& acts_as) {
    std::vector<wire::sid> token{sid_of(user), wire::sid_everyone, wire::sid_network};
    if (not is_known(user)) return token;
    token.push_back(wire::sid_authenticated_users);
    if (not acts_as) return token;
    token.push_back(wire::sid_of_unix_user(acts_as->id));
    for (const std::uint32_t group : acts_as->groups)
        token.push_back(wire::sid_of_unix_group(group));
    return token;
}

}  // namespace sluice::smb::server
