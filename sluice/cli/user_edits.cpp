#include "sluice/cli/user_edits.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "sluice/cli/writer_lock.hpp"

namespace sluice::cli {
namespace {

// Gives the new file the owner of the file that it replaces: root edits the users of a server that
// runs under another account, which must be able to read them.
class exclusive_edit final : public smb::server::users_edit {
public:
    exclusive_edit(writer_lock held, const std::string& path) : held_(std::move(held)) {
        struct stat now{};
        if (::geteuid() == 0 and ::lstat(path.c_str(), &now) == 0 and S_ISREG(now.st_mode)) before_ = now;
    }
    [[nodiscard]] result<void> prepare(const io::file_handle& fresh) noexcept override {
        if (not before_ or ::fchown(fresh.descriptor(), before_->st_uid, before_->st_gid) == 0) return {};
        return failure(error::last("keep the owner of the users file"));
    }

private:
    writer_lock held_;
    std::optional<struct stat> before_;  // none: it does not exist, or this is not root
};

}  // namespace

result<std::shared_ptr<smb::server::users_edit>> exclude_editors(const std::string& path) {
    auto held = writer_lock::take(path, std::chrono::seconds(10));
    if (not held) return failure(held.error());
    // An editor that died has not damaged the file: it is replaced atomically.
    return std::make_shared<exclusive_edit>(*std::move(held), path);
}

}  // namespace sluice::cli
