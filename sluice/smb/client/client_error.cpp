#include "sluice/smb/client/client_error.hpp"

#include <array>
#include <cstdio>

#include "sluice/smb/client/status_text.hpp"

namespace sluice::smb::client {

using wire::nt_status;

client_error client_error::of_status(const char* step, nt_status status) noexcept {
    return {kind::status, step, "", status, text_of(status).code};
}

bool client_error::is_of_connection() const noexcept {
    switch (kind_) {
        case kind::io:
        case kind::protocol:
            return true;
        case kind::status:
            return status_ == nt_status::user_session_deleted or
                   status_ == nt_status::network_session_expired or
                   status_ == nt_status::network_name_deleted;
        case kind::policy:
            return false;
    }
    return false;
}

namespace {

[[nodiscard]] std::string name_or_number(nt_status status) {
    const std::string_view name = name_of(status);
    if (name != "STATUS_?") return std::string(name);
    std::array<char, 16> number{};
    std::snprintf(number.data(), number.size(), "0x%08x", static_cast<unsigned>(status));
    return number.data();
}

}  // namespace

std::string client_error::message() const {
    std::string text = step_;
    switch (kind_) {
        case kind::io:
            return text + ": " + std::error_code(code_, std::generic_category()).message();
        case kind::protocol:
            return text + ": protocol error: " + rule_;
        case kind::policy:
            return text + ": " + rule_;
        case kind::status:
            break;
    }
    const status_text& known = text_of(status_);
    if (known.meaning.empty()) return text + ": the server returned " + name_or_number(status_);
    text.append(": ").append(known.meaning).append(" (").append(name_of(status_)).append(")");
    if (not known.remedy.empty()) text.append("; ").append(known.remedy);
    return text;
}

}  // namespace sluice::smb::client
