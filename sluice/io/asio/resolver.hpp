#pragma once

#include <asio/any_io_executor.hpp>
#include <atomic>
#include <cerrno>
#include <memory>

#include "sluice/io/asio/resolver_query.hpp"

namespace sluice::io {

namespace detail {

/// The resolver threads of a context, shared by its resolvers.
class asio_name_service final : public asio::execution_context::service {
public:
    explicit asio_name_service(asio::execution_context& on) : asio::execution_context::service(on) {}

    inline static asio::execution_context::id id;
    [[nodiscard]] name_resolver& resolver() noexcept { return *resolver_; }

    /// An operation that looks up a name, for as long as this exists.
    class lookup {
    public:
        explicit lookup(asio_name_service& by) noexcept : by_(by) {
            // The count orders no other access.
            by_.lookups_.fetch_add(1, std::memory_order_relaxed);
        }
        lookup(const lookup&) = delete;
        lookup& operator=(const lookup&) = delete;
        ~lookup() { by_.lookups_.fetch_sub(1, std::memory_order_relaxed); }

    private:
        asio_name_service& by_;
    };

private:
    void shutdown() noexcept override {}
    void notify_fork(asio::execution_context::fork_event event) override {
        if (event == asio::execution_context::fork_prepare and lookups_.load(std::memory_order_relaxed) != 0)
            asio_throw_if(asio_errno(EBUSY), "notify_fork while names are looked up: wait for the lookups");
        if (event != asio::execution_context::fork_child) return;
        // Its threads are the parent's, and may hold its locks forever here.
        (void)resolver_.release();  // NOLINT: left behind
        resolver_ = std::make_unique<name_resolver>();
    }

    std::atomic<int> lookups_{0};
    std::unique_ptr<name_resolver> resolver_ = std::make_unique<name_resolver>();
};

class asio_resolver_core final : public asio_core_base {
public:
    explicit asio_resolver_core(asio_context& on)
        : asio_core_base(on), names(asio::use_service<asio_name_service>(on)) {}

    asio_name_service& names;
};

template <class Protocol>
class asio_resolve {
public:
    asio_resolve(asio_resolver_core& core, const asio_query& query)
        : core_(core), lookup_(core.names), query_(query), known_(asio_known_of(query_)) {}
    [[nodiscard]] auto sender() {
        return async_resolve(core_.context.multiplexer(), core_.names.resolver(),
                             {.host = query_.host, .port = known_.port});
    }
    [[nodiscard]] bool is_nothing() const noexcept { return known_.is_all(); }
    [[nodiscard]] auto nothing() { return made_of(known_.addresses, known_.why); }
    [[nodiscard]] auto finish(addresses_result&& outcome) {
        if (not outcome) return made_of({}, asio_lookup_error(outcome.error()));
        return made_of(*outcome, {});
    }

private:
    [[nodiscard]] auto made_of(const std::vector<socket_address>& addresses, asio::error_code why) const {
        asio::ip::basic_resolver_results<Protocol> results;
        if (not why) results = asio_results<Protocol>(query_, addresses, why);
        return std::tuple(why, std::move(results));
    }

    asio_resolver_core& core_;
    asio_name_service::lookup lookup_;
    asio_query query_;
    asio_known known_;
};

}  // namespace detail

namespace asio_names {

/// Asio's ip::basic_resolver on our name_resolver, whose threads the resolvers of a context share.
/// A host is looked up without blocking the loop; a service name (not a number) is looked up in
/// /etc/services by the initiating function. Cancelling ends the wait, not the lookup.
/// canonical_name and all_matching are ignored; only the blocking form resolves endpoints to names.
/// Thread safety, completion and allocation: as asio_stream; the query and its results are
/// allocated.
template <class Protocol, class Executor = asio::any_io_executor>
class basic_resolver : public asio::ip::resolver_base {
    using text = std::string_view;

public:
    using executor_type = Executor;
    using protocol_type = Protocol;
    using endpoint_type = typename Protocol::endpoint;
    using results_type = asio::ip::basic_resolver_results<Protocol>;
    using iterator = results_type;
    template <class Other>
    struct rebind_executor {
        using other = basic_resolver<Protocol, Other>;
    };

    explicit basic_resolver(const executor_type& executor)
        : executor_(executor),
          core_(detail::make_asio_core<detail::asio_resolver_core>(detail::asio_context_of(executor_))) {}
    template <asio_execution_context Context>
    explicit basic_resolver(Context& context) : basic_resolver(executor_type(context.get_executor())) {}
    basic_resolver(basic_resolver&&) noexcept = default;
    basic_resolver& operator=(basic_resolver&& other) noexcept {
        if (this == &other) return *this;
        cancel();
        executor_ = other.executor_;
        core_ = std::move(other.core_);
        return *this;
    }
    ~basic_resolver() { cancel(); }

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }
    void cancel() noexcept {
        if (core_ != nullptr) core_->cancel_all(core_);
    }

    /// void(asio::error_code, results_type).
    template <class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, flags>)
    auto async_resolve(text host, text service, Token&& token = Token()) {
        return resolve_later(query_of(AF_UNSPEC, host, service, {}), token);
    }
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_resolve(text host, text service, flags how, Token&& token = Token()) {
        return resolve_later(query_of(AF_UNSPEC, host, service, how), token);
    }
    template <class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, flags>)
    auto async_resolve(const protocol_type& protocol, text host, text service, Token&& token = Token()) {
        return resolve_later(query_of(protocol.family(), host, service, {}), token);
    }
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_resolve(const protocol_type& protocol, text host, text service, flags how,
                       Token&& token = Token()) {
        return resolve_later(query_of(protocol.family(), host, service, how), token);
    }

    /// Blocks: during the lookup.
    [[nodiscard]] results_type resolve(text host, text service, asio::error_code& why) {
        return resolve_now(query_of(AF_UNSPEC, host, service, {}), why);
    }
    [[nodiscard]] results_type resolve(text host, text service, flags how, asio::error_code& why) {
        return resolve_now(query_of(AF_UNSPEC, host, service, how), why);
    }
    [[nodiscard]] results_type resolve(text host, text service, flags how = {}) {
        return resolve_or_throw(query_of(AF_UNSPEC, host, service, how));
    }
    [[nodiscard]] results_type resolve(const protocol_type& protocol, text host, text service,
                                       asio::error_code& why) {
        return resolve_now(query_of(protocol.family(), host, service, {}), why);
    }
    [[nodiscard]] results_type resolve(const protocol_type& protocol, text host, text service, flags how,
                                       asio::error_code& why) {
        return resolve_now(query_of(protocol.family(), host, service, how), why);
    }
    [[nodiscard]] results_type resolve(const protocol_type& protocol, text host, text service,
                                       flags how = {}) {
        return resolve_or_throw(query_of(protocol.family(), host, service, how));
    }
    /// Returns the names of an endpoint.
    [[nodiscard]] results_type resolve(const endpoint_type& of, asio::error_code& why) {
        std::array<char, NI_MAXHOST> host{};
        std::array<char, NI_MAXSERV> service{};
        const int how = endpoint_type().protocol().type() == SOCK_DGRAM ? NI_DGRAM : 0;
        const int failed =
            ::getnameinfo(reinterpret_cast<const sockaddr*>(of.data()), static_cast<socklen_t>(of.size()),
                          host.data(), host.size(), service.data(), service.size(), how);
        why = failed == 0 ? asio::error_code() : asio::error_code(asio::error::host_not_found);
        return why ? results_type() : results_type::create(of, host.data(), service.data());
    }
    [[nodiscard]] results_type resolve(const endpoint_type& of) {
        return detail::asio_or_throw("resolve", [&](asio::error_code& why) { return resolve(of, why); });
    }

private:
    [[nodiscard]] static detail::asio_query query_of(int family, text host, text service, flags how) {
        return {.host = std::string(host),
                .service = std::string(service),
                .family = family,
                .type = endpoint_type().protocol().type(),
                .flags = how};
    }
    template <class Token>
    auto resolve_later(const detail::asio_query& query, Token& token) {
        using work = detail::asio_resolve<Protocol>;
        return detail::asio_initiate<void(asio::error_code, results_type), work>(core_, executor_, token,
                                                                                 query);
    }
    [[nodiscard]] results_type resolve_now(const detail::asio_query& query, asio::error_code& why) {
        detail::asio_known known = detail::asio_known_of(query);
        why = known.why;
        if (not known.is_all()) {
            auto outcome = core_->names.resolver().resolve({.host = query.host, .port = known.port});
            if (outcome.has_value()) {
                known.addresses = std::move(*outcome);
            } else {
                why = detail::asio_lookup_error(outcome.error());
            }
        }
        return why ? results_type() : detail::asio_results<Protocol>(query, known.addresses, why);
    }
    [[nodiscard]] results_type resolve_or_throw(const detail::asio_query& query) {
        return detail::asio_or_throw("resolve",
                                     [&](asio::error_code& why) { return resolve_now(query, why); });
    }

    executor_type executor_;
    std::shared_ptr<detail::asio_resolver_core> core_;
};

}  // namespace asio_names
}  // namespace sluice::io
