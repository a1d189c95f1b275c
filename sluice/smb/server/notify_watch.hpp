#pragma once

namespace sluice::smb::server {

/// What CHANGE_NOTIFY keeps with an open directory between requests: the watch, and changes nobody has asked
/// for yet. Ending it ends the requests that wait on it with NOTIFY_CLEANUP.
class notify_watch {
public:
    virtual ~notify_watch() = default;
    notify_watch(const notify_watch&) = delete;
    notify_watch& operator=(const notify_watch&) = delete;

protected:
    notify_watch() = default;
};

}  // namespace sluice::smb::server
