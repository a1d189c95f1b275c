#include "sluice/cli/user_edits.hpp"

#include "sluice/cli/write_hold.hpp"

namespace sluice::cli {

result<std::shared_ptr<void>> exclude_editors(const std::string& path) {
    auto held = write_hold::take(path, std::chrono::seconds(10));
    if (not held) return failure(held.error());
    // An editor that died has not damaged the file: it is replaced atomically.
    return std::make_shared<write_hold>(*std::move(held));
}

}  // namespace sluice::cli
