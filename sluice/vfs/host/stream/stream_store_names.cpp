#include "sluice/vfs/host/stream/stream_store_names.hpp"

#include <sys/file.h>

#include <cerrno>

#include "sluice/base/case_fold.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::vfs {

bool is_stream_store(std::string_view host_name) noexcept {
    std::size_t at = 0;
    for (const char expected : stream_store_name) {
        if (at == host_name.size()) return false;
        const name_character next = character_at(host_name, at);
        if (upcase(host_character(next.point)) != upcase(static_cast<char32_t>(expected))) return false;
        at += next.length;
    }
    return at == host_name.size();
}

bool leads_into_stream_store(std::string_view host_path) noexcept {
    for (;;) {
        const std::size_t slash = host_path.find('/');
        if (is_stream_store(host_path.substr(0, slash))) return true;
        if (slash == host_path.npos) return false;
        host_path.remove_prefix(slash + 1);
    }
}

bool is_in_stream_store(const io::handle& open, const io::file_status& status) noexcept {
    const bool may_be =
        (status.type == io::file_type::directory and status.permission_bits == stream_directory_bits) or
        (status.type == io::file_type::regular and status.permission_bits == stream_file_bits);
    if (not may_be) return false;
    const auto record = load_stream_record(open);
    // An account that may not read the mark could not use the object either.
    return not record or (*record and (*record)->kind == stream_record_kind::mark);
}

void lock_streams(const io::directory_handle& directory) noexcept {
    while (::flock(directory.descriptor(), LOCK_EX) != 0 and errno == EINTR)
        continue;
}

}  // namespace sluice::vfs
