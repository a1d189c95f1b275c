#include "sluice/cli/serve/server_name.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace sluice::cli {

bool is_in_server_name(char c) noexcept {
    return (c >= 'a' and c <= 'z') or (c >= 'A' and c <= 'Z') or (c >= '0' and c <= '9') or c == '-';
}

std::string server_name_for(std::string_view host) {
    std::string name(host.substr(0, host.find('.')));
    std::erase_if(name, [](char c) { return not is_in_server_name(c); });
    if (name.size() > netbios_name_max) name.resize(netbios_name_max);
    std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'a' and c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return name.empty() or name == "LOCALHOST" ? "SLUICE" : name;
}

std::string default_server_name() {
    std::array<char, 256> host{};
    const bool has_name = ::gethostname(host.data(), host.size() - 1) == 0;
    return server_name_for(has_name ? host.data() : "");
}

}  // namespace sluice::cli
