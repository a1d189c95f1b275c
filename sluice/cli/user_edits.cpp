#include "sluice/cli/user_edits.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "sluice/cli/writer_lock.hpp"

namespace sluice::cli {
namespace {

// Keeps other editors out. When it ends, the users file has the owner that it had before: root edits
// the users of a server that runs under another account, which must be able to read them.
class users_edit {
public:
    users_edit(writer_lock held, const std::string& path) : held_(std::move(held)), path_(path) {
        struct stat now{};
        if (::geteuid() == 0 and ::lstat(path_.c_str(), &now) == 0 and S_ISREG(now.st_mode)) before_ = now;
    }
    users_edit(const users_edit&) = delete;
    users_edit& operator=(const users_edit&) = delete;
    ~users_edit() {
        if (not before_ or ::lchown(path_.c_str(), before_->st_uid, before_->st_gid) == 0) return;
        fmt::print(stderr, "sluice user: cannot keep the owner of {}: {}; run 'chown {}:{} {}'\n", path_,
                   error::last("chown").message(), before_->st_uid, before_->st_gid, path_);
    }

private:
    writer_lock held_;
    std::string path_;
    std::optional<struct stat> before_;  // none: it did not exist, or this is not root
};

}  // namespace

result<std::shared_ptr<void>> exclude_editors(const std::string& path) {
    auto held = writer_lock::take(path, std::chrono::seconds(10));
    if (not held) return failure(held.error());
    // An editor that died has not damaged the file: it is replaced atomically.
    return std::make_shared<users_edit>(*std::move(held), path);
}

}  // namespace sluice::cli
