#include "sluice/smb/server/operation/rpc_named_pipe.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/rpc/rpc_pipe.hpp"

namespace sluice::smb::server {

namespace {

// The information about a server that browsing clients get.
class server_rpc_host final : public wire::rpc_host {
public:
    explicit server_rpc_host(const server_context& host) noexcept : host_(host) {}

    [[nodiscard]] std::string name() const override { return host_.configuration().name; }
    [[nodiscard]] std::string comment() const override { return host_.configuration().comment; }
    [[nodiscard]] std::string domain() const override { return host_.names().netbios_domain; }
    [[nodiscard]] wire::unix_time now() const override {
        return wire::unix_time_of(wire::filetime_of(host_.clock().utc_now()));
    }
    [[nodiscard]] std::vector<wire::rpc_share> shares() const override {
        std::vector<wire::rpc_share> listed;
        const share_list::snapshot all = host_.shares.current();
        for (const std::shared_ptr<share>& one : *all) {
            const share_configuration& settings = one->configuration();
            if (one->is_withdrawn() or settings.is_hidden) continue;
            // Clients hide names that end in a dollar sign; this server reports which of its shares
            // are hidden.
            wire::rpc_share shown{.name = settings.name,
                                  .comment = one->is_pipes() ? "Pipes of the server" : settings.comment,
                                  .type = one->is_pipes() ? wire::rpc_share::ipc | wire::rpc_share::special
                                                          : wire::rpc_share::disk_tree,
                                  .flags = 0,
                                  .access_max = one->access_max()};
            if (settings.hides_unreadable) shown.flags |= wire::rpc_share::access_based_directory_enum;
            if (settings.encryption == protection::required) shown.flags |= wire::rpc_share::encrypt_data;
            listed.push_back(std::move(shown));
        }
        return listed;
    }

private:
    const server_context& host_;
};

class rpc_named_pipe final : public named_pipe {
public:
    rpc_named_pipe(const server_context& host, wire::rpc_service service) noexcept
        : rpc_host_(host), pipe_(service, rpc_host_) {}

protected:
    [[nodiscard]] read_outcome read_answer(mutable_bytes into) noexcept override {
        const wire::rpc_pipe::read_result got = pipe_.read(into);
        return {.bytes = got.bytes, .more = got.more};
    }
    [[nodiscard]] std::size_t answer_bytes() const noexcept override { return pipe_.readable_bytes(); }
    [[nodiscard]] bool take(bytes_view request) noexcept override { return pipe_.write(request); }

private:
    server_rpc_host rpc_host_;
    wire::rpc_pipe pipe_;
};

}  // namespace

std::unique_ptr<named_pipe> make_named_pipe(const server_context& host, std::string_view name) {
    if (name.starts_with('\\')) name.remove_prefix(1);
    if (equal_ignoring_case(name, "srvsvc"))
        return std::make_unique<rpc_named_pipe>(host, wire::rpc_service::srvsvc);
    if (equal_ignoring_case(name, "wkssvc"))
        return std::make_unique<rpc_named_pipe>(host, wire::rpc_service::wkssvc);
    return nullptr;
}

}  // namespace sluice::smb::server
