#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "sluice/smb/server/journal/handle_journal.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"

namespace sluice::smb::server {

class file_state;

/// The record of a persistent open in the journal of its share, and the texts and locks that the
/// record refers to. Its end clears the record, so that an open which ends in whatever way is not
/// restored.
/// Thread safety: under the mutex of the file of its open. Allocates: the texts.
struct persistence {
    explicit persistence(handle_journal::slot in) noexcept : slot(std::move(in)) {}
    persistence(const persistence&) = delete;
    persistence& operator=(const persistence&) = delete;

    quota_hold counted;  // among the persistent opens
    handle_journal::slot slot;
    handle_record record{};
    std::string owner;
    std::string domain;
    std::string share;
    std::string path;
    /// A second name that the file may have: during a rename the new one, and after a restart that
    /// was in the middle of one, the other one, by which the client may still know the file.
    std::string other_path;
    bool is_closed = false;  // by its client; the file is removed
    std::string stream;
    std::array<recorded_lock, handle_record::locks_max> locks{};
};

/// A record whose open an earlier server had, and which is not restored for a cause that may pass.
/// Until its time ends, it keeps clients from the file (file_state::unrestored_opens), so that the
/// next process can still restore the open. Thread safety: owned by the first loop.
struct unrestored_open {
    std::shared_ptr<file_state> file;
    handle_journal::slot slot;
};

}  // namespace sluice::smb::server
