#include "sluice/smb/server/operation/rpc_named_pipe.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/rpc_server_host.hpp"
#include "sluice/smb/wire/rpc/rpc_pipe.hpp"
#include "sluice/smb/wire/rpc/rpc_replies.hpp"

namespace sluice::smb::server {

namespace {

struct named_service {
    std::string_view name;
    wire::rpc_service service;
};
constexpr std::array services{
    named_service{"srvsvc", wire::rpc_service::srvsvc}, named_service{"wkssvc", wire::rpc_service::wkssvc},
    named_service{"lsarpc", wire::rpc_service::lsarpc}, named_service{"samr", wire::rpc_service::samr}};

[[nodiscard]] std::optional<wire::rpc_service> service_of(std::string_view name) noexcept {
    if (name.starts_with('\\')) name.remove_prefix(1);
    for (const named_service& one : services)
        if (equal_ignoring_case(one.name, name)) return one.service;
    return std::nullopt;
}

/// As named_pipe: the holder of `requests` owns the server's end and its host; the mutex guards the
/// replies and the hold.
class rpc_named_pipe final : public named_pipe {
public:
    rpc_named_pipe(server_context& host, wire::rpc_service service, const session& by)
        : host_(host),
          rpc_host_(host, by),
          pipe_(service, rpc_host_),
          kept_(host.quotas.take(by.admitted.client, limit::pipe_bytes, 0)) {}

    [[nodiscard]] std::vector<pipe_work> take_work() noexcept override {
        std::vector<pipe_work> work = rpc_host_.take_work();
        if (std::exchange(is_rejected_, false))
            work.emplace_back([&host = host_, by = kept_.client()]() noexcept {
                host.rejections.add(limit::pipe_bytes, by.name());
                return std::size_t{0};
            });
        return work;
    }

protected:
    [[nodiscard]] bool process(bytes_view request, std::size_t unread_bytes) noexcept override {
        const bool is_valid = pipe_.write(request, unread_bytes);
        fresh_ = pipe_.take_replies();
        return is_valid;
    }
    [[nodiscard]] bool publish(bool is_valid) noexcept override {
        replies_.append(std::exchange(fresh_, {}));
        pipe_bytes_ = pipe_.kept_bytes();
        is_rejected_ = is_valid and not kept_.try_resize(kept_bytes());
        ENSURE(is_valid or pipe_.broken(), "bytes that are invalid break the pipe");
        if (is_valid and not is_rejected_) return true;
        pipe_.disconnect();
        replies_.clear();
        pipe_bytes_ = 0;
        (void)kept_.try_resize(0);
        return false;
    }
    [[nodiscard]] read_outcome read_answer(mutable_bytes into) noexcept override {
        const wire::rpc_replies::read_result got = replies_.read(into);
        (void)kept_.try_resize(std::min(kept_bytes(), kept_.amount()));
        return {.bytes = got.bytes, .more = got.more};
    }
    [[nodiscard]] std::size_t answer_bytes() const noexcept override { return replies_.readable_bytes(); }

private:
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return pipe_bytes_ + replies_.kept_bytes(); }

    server_context& host_;
    rpc_server_host rpc_host_;
    wire::rpc_pipe pipe_;
    std::vector<std::byte> fresh_;  // replies that were not published
    bool is_rejected_ = false;      // by the quota; not counted yet
    wire::rpc_replies replies_;
    quota_hold kept_;             // the memory of the pipe
    std::size_t pipe_bytes_ = 0;  // that of the server's end after the last request
};

}  // namespace

bool is_pipe_name(std::string_view name) noexcept {
    return service_of(name).has_value();
}

std::unique_ptr<named_pipe> make_named_pipe(server_context& host, std::string_view name, const session& by) {
    const std::optional<wire::rpc_service> service = service_of(name);
    if (not service) return nullptr;
    ENSURE(by.state() != session::phase::in_progress, "a pipe belongs to a user who has logged on");
    return std::make_unique<rpc_named_pipe>(host, *service, by);
}

}  // namespace sluice::smb::server
