#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

/// The order in which files are marked.
[[nodiscard]] inline auto order_of(file_state& of) noexcept {
    const file_section held(of);
    const vfs::file_key key = of.key(held);
    return std::tuple(key.image, key.volume, key.file);
}

/// The rights to the names of two files: a rename mark at each, in the order of their keys.
/// Loop-owned, in the frame of a rename. Lifetime: the request outlives it.
class rename_marks {
public:
    explicit rename_marks(request& r) noexcept : r_(r) {}
    rename_marks(const rename_marks&) = delete;
    rename_marks& operator=(const rename_marks&) = delete;
    ~rename_marks() { release(false); }

    /// Marks both; either may be null. False: the request was interrupted. Suspends.
    [[nodiscard]] io::task<bool> set(std::shared_ptr<file_state> source,
                                     std::shared_ptr<file_state> target) noexcept {
        source_.file = std::move(source);
        target_.file = std::move(target);
        const bool is_source_first =
            target_.file == nullptr or
            (source_.file != nullptr and order_of(*source_.file) < order_of(*target_.file));
        for (mark* const each :
             {is_source_first ? &source_ : &target_, is_source_first ? &target_ : &source_}) {
            if (each->file == nullptr) continue;
            each->granted.emplace(r_.loop());
            each->right.emplace(*each->granted);
            if (begin(*each)) continue;
            (void)co_await r_.wait(*each->granted);
            if (not is_held(*each)) co_return false;
        }
        co_return true;
    }
    /// Whether a file has been removed before it was marked: look its name up again.
    [[nodiscard]] bool finds_removed() const noexcept { return is_removed(source_) or is_removed(target_); }
    /// Releases the marks. `has_replaced`: the rename has replaced the target, and has counted the
    /// removal. If no open has that any more, the file table forgets it.
    void release(bool has_replaced) noexcept {
        release(source_, false);
        release(target_, has_replaced);
    }

private:
    struct mark {
        std::shared_ptr<file_state> file;
        std::optional<one_shot_event<wire::nt_status>> granted;
        std::optional<name_right> right;  // before `granted` goes
    };
    [[nodiscard]] static bool begin(mark& one) noexcept {
        const file_section held(*one.file);
        return one.file->protocol(held).mark(*one.right);
    }
    [[nodiscard]] static bool is_held(const mark& one) noexcept {
        const file_section held(*one.file);
        return one.right->is_held();
    }
    [[nodiscard]] static bool is_removed(const mark& one) noexcept {
        if (one.file == nullptr) return false;
        const file_section held(*one.file);
        return one.file->protocol(held).phase() == delete_phase::removed;
    }
    void release(mark& one, bool has_replaced) noexcept {
        if (not one.right) return;
        {
            const file_section held(*one.file);
            if (one.file->protocol(held).unmark(*one.right, has_replaced))
                r_.host().files.forget(held, *one.file);
        }
        one.right.reset();
        one.granted.reset();
    }

    request& r_;
    mark source_;
    mark target_;
};

}  // namespace sluice::smb::server
