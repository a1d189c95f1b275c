#include "sluice/smb/server/open/open.hpp"

#include <algorithm>

namespace sluice::smb::server {

namespace {

// Whether no other open of the file was made through the same share.
[[nodiscard]] bool is_only_of_share(const open& one) noexcept {
    return std::ranges::none_of(one.file->opens(), [&](const open* other) {
        return other != &one and other->tree->target == one.tree->target;
    });
}

}  // namespace

open::open() noexcept = default;

open::~open() {
    ENSURE(is_closed or file == nullptr, "an open is ended before it goes");
    ENSURE(watch == nullptr and pending_writes == 0, "watches and writes hold their open, or end with it");
    ENSURE(not durable or not durable->end, "an open that is kept for its client is in the table");
    scan.reset();
    if (node == nullptr) return;
    // Closing its descriptors may block. The share keeps the volume until then; the tree, which is counted
    // for its client, goes here.
    vfs::fs_domain& domain = node->domain();
    domain.discard(std::move(node), tree->target);
}

void open::enter_file() {
    ENSURE(entry.is_inside(), "an open has joined before it is in the list of its file");
    file->add(*this);
    if (is_only_of_share(*this)) tree->target->note_open_file();
}

void open::leave_file() noexcept {
    ENSURE(entry.is_inside(), "an open leaves the list of its file before its entry goes");
    if (is_only_of_share(*this)) tree->target->note_closed_file();
    file->remove(*this);
}

}  // namespace sluice::smb::server
