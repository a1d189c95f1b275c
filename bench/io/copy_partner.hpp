#pragma once

#include <thread>

namespace sluice::bench {

/// The other end of a TCP connection over loopback, with a thread on the last CPU that discards all
/// received bytes, or sends without end. Ends with the connection.
class copy_partner {
public:
    enum class does { receive, send };

    explicit copy_partner(does what);
    copy_partner(const copy_partner&) = delete;
    copy_partner& operator=(const copy_partner&) = delete;
    ~copy_partner();

    [[nodiscard]] int socket() const noexcept { return ours_; }
    /// Returns our end. The caller closes it before this object is destroyed.
    [[nodiscard]] int release() noexcept;

private:
    int ours_ = -1;
    int theirs_ = -1;
    std::thread thread_;
};

}  // namespace sluice::bench
