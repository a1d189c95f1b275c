#pragma once

#include <atomic>
#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/execution_model/stop_token.hpp"

/// A small model of std::execution, with which the bridge is tested if no implementation is
/// installed. It checks the requirements of P2300 on the other side (concepts, noexcept, rvalue
/// completions) rather than helping it, and uses the names of std::execution.
namespace execution_model {

struct sender_t {};
struct receiver_t {};
struct operation_state_t {};
struct scheduler_t {};

template <class... Signatures>
struct completion_signatures {};

// --- completions
// ----------------------------------------------------------------------------------------------

struct set_value_t {
    template <class Receiver, class... Values>
        requires requires(Receiver&& to, Values&&... values) {
            { std::forward<Receiver>(to).set_value(std::forward<Values>(values)...) } noexcept;
        }
    void operator()(Receiver&& to, Values&&... values) const noexcept {
        static_assert(not std::is_lvalue_reference_v<Receiver>, "receivers are completed as rvalues");
        std::forward<Receiver>(to).set_value(std::forward<Values>(values)...);
    }
};
struct set_error_t {
    template <class Receiver, class Error>
        requires requires(Receiver&& to, Error&& error) {
            { std::forward<Receiver>(to).set_error(std::forward<Error>(error)) } noexcept;
        }
    void operator()(Receiver&& to, Error&& error) const noexcept {
        static_assert(not std::is_lvalue_reference_v<Receiver>, "receivers are completed as rvalues");
        std::forward<Receiver>(to).set_error(std::forward<Error>(error));
    }
};
struct set_stopped_t {
    template <class Receiver>
        requires requires(Receiver&& to) {
            { std::forward<Receiver>(to).set_stopped() } noexcept;
        }
    void operator()(Receiver&& to) const noexcept {
        static_assert(not std::is_lvalue_reference_v<Receiver>, "receivers are completed as rvalues");
        std::forward<Receiver>(to).set_stopped();
    }
};

// --- queries
// -------------------------------------------------------------------------------------------------

struct empty_env {};

struct get_env_t {
    template <class From>
    auto operator()(const From& from) const noexcept {
        if constexpr (requires { from.get_env(); }) {
            static_assert(noexcept(from.get_env()));
            return from.get_env();
        } else {
            return empty_env{};
        }
    }
};
inline constexpr get_env_t get_env{};

struct get_stop_token_t {
    template <class Env>
    auto operator()(const Env& env) const noexcept {
        if constexpr (requires { env.query(*this); }) {
            return env.query(*this);
        } else {
            return never_stop_token{};
        }
    }
};
inline constexpr get_stop_token_t get_stop_token{};

template <class Signal>
struct get_completion_scheduler_t {
    template <class Env>
        requires requires(const Env& env) {
            { env.query(get_completion_scheduler_t{}) } noexcept;
        }
    auto operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
template <class Signal>
inline constexpr get_completion_scheduler_t<Signal> get_completion_scheduler{};

// --- concepts
// ------------------------------------------------------------------------------------------------

template <class O>
concept operation_state =
    std::derived_from<typename O::operation_state_concept, operation_state_t> and requires(O& o) {
        { o.start() } noexcept;
    };

template <class R>
concept receiver = std::derived_from<typename std::remove_cvref_t<R>::receiver_concept, receiver_t> and
                   std::is_nothrow_move_constructible_v<std::remove_cvref_t<R>>;

namespace detail {

template <class R, class Signature>
inline constexpr bool can_take = false;
template <class R, class Signal, class... Arguments>
inline constexpr bool can_take<R, Signal(Arguments...)> =
    std::is_nothrow_invocable_v<Signal, R, Arguments...>;

template <class R, class Signatures>
inline constexpr bool can_take_all = false;
template <class R, class... Signatures>
inline constexpr bool can_take_all<R, completion_signatures<Signatures...>> =
    (can_take<R, Signatures> and ...);

template <class T>
inline constexpr bool is_signatures = false;
template <class... S>
inline constexpr bool is_signatures<completion_signatures<S...>> = true;

}  // namespace detail

template <class R, class Signatures>
concept receiver_of = receiver<R> and detail::can_take_all<std::remove_cvref_t<R>, Signatures>;

template <class S>
concept sender = std::derived_from<typename std::remove_cvref_t<S>::sender_concept, sender_t> and
                 std::move_constructible<std::remove_cvref_t<S>> and
                 detail::is_signatures<typename std::remove_cvref_t<S>::completion_signatures>;

template <class S>
using signatures_of = typename std::remove_cvref_t<S>::completion_signatures;

template <class S, class R>
concept sender_to = sender<S> and receiver_of<R, signatures_of<S>> and requires(S&& s, R&& r) {
    { std::forward<S>(s).connect(std::forward<R>(r)) } -> operation_state;
};

struct connect_t {
    template <class S, class R>
        requires sender_to<S, R>
    auto operator()(S&& s, R&& r) const {
        return std::forward<S>(s).connect(std::forward<R>(r));
    }
};
inline constexpr connect_t connect{};

struct start_t {
    void operator()(operation_state auto& o) const noexcept { o.start(); }
};
inline constexpr start_t start{};

struct schedule_t {
    template <class S>
    sender auto operator()(S&& s) const noexcept {
        return std::forward<S>(s).schedule();
    }
};
inline constexpr schedule_t schedule{};

template <class S>
concept scheduler = std::derived_from<typename S::scheduler_concept, scheduler_t> and
                    std::equality_comparable<S> and std::copy_constructible<S> and requires(const S& s) {
                        { schedule(s) } -> sender;
                        { get_completion_scheduler<set_value_t>(get_env(schedule(s))) } -> std::same_as<S>;
                    };

// --- just, then, upon_error, upon_stopped
// --------------------------------------------------------------------

template <class... Values>
struct just_sender {
    using sender_concept = sender_t;
    using completion_signatures = execution_model::completion_signatures<set_value_t(Values...)>;

    template <class R>
    struct state {
        using operation_state_concept = operation_state_t;
        void start() & noexcept {
            std::apply([this](Values&... vs) { set_value_t{}(std::move(to), std::move(vs)...); }, values);
        }
        R to;
        std::tuple<Values...> values;
    };
    template <class R>
    auto connect(R to) && {
        return state<R>{std::move(to), std::move(values)};
    }
    std::tuple<Values...> values;
};
template <class... Values>
auto just(Values... values) {
    return just_sender<Values...>{{std::move(values)...}};
}

namespace detail {

template <class Signal, class F, class Signature>
struct mapped {
    using type = Signature;
};
template <class Value>
struct value_signature {
    using type = set_value_t(Value);
};
template <>
struct value_signature<void> {
    using type = set_value_t();
};
template <class Signal, class F, class... Arguments>
struct mapped<Signal, F, Signal(Arguments...)> : value_signature<std::invoke_result_t<F, Arguments...>> {};

template <class Signal, class F, class Signatures>
struct mapped_all;
template <class Signal, class F, class... Signatures>
struct mapped_all<Signal, F, completion_signatures<Signatures...>> {
    using type = completion_signatures<typename mapped<Signal, F, Signatures>::type...>;
};

template <class Signal, class F, class R>
struct mapping_receiver {
    using receiver_concept = receiver_t;

    template <class S, class... Arguments>
    void handle(Arguments&&... arguments) noexcept {
        if constexpr (not std::same_as<S, Signal>) {
            S{}(std::move(to), std::forward<Arguments>(arguments)...);
        } else if constexpr (std::is_void_v<std::invoke_result_t<F, Arguments...>>) {
            std::move(f)(std::forward<Arguments>(arguments)...);
            set_value_t{}(std::move(to));
        } else {
            set_value_t{}(std::move(to), std::move(f)(std::forward<Arguments>(arguments)...));
        }
    }
    void set_value(auto&&... values) && noexcept {
        handle<set_value_t>(std::forward<decltype(values)>(values)...);
    }
    void set_error(auto&& error) && noexcept { handle<set_error_t>(std::forward<decltype(error)>(error)); }
    void set_stopped() && noexcept { handle<set_stopped_t>(); }
    [[nodiscard]] auto get_env() const noexcept { return execution_model::get_env(to); }

    F f;
    R to;
};

template <class Signal, class S, class F>
struct mapping_sender {
    using sender_concept = sender_t;
    using completion_signatures = typename mapped_all<Signal, F, signatures_of<S>>::type;

    template <class R>
    auto connect(R to) && {
        return execution_model::connect(std::move(from),
                                        mapping_receiver<Signal, F, R>{std::move(f), std::move(to)});
    }
    [[nodiscard]] auto get_env() const noexcept { return execution_model::get_env(from); }

    S from;
    F f;
};

template <class Signal, class F>
struct mapping_closure {
    template <sender S>
    friend auto operator|(S from, mapping_closure with) {
        return mapping_sender<Signal, S, F>{std::move(from), std::move(with.f)};
    }
    F f;
};

}  // namespace detail

template <class F>
auto then(F f) {
    return detail::mapping_closure<set_value_t, F>{std::move(f)};
}
template <class F>
auto upon_error(F f) {
    return detail::mapping_closure<set_error_t, F>{std::move(f)};
}
template <class F>
auto upon_stopped(F f) {
    return detail::mapping_closure<set_stopped_t, F>{std::move(f)};
}

// --- sync_wait
// ------------------------------------------------------------------------------------------------

namespace detail {

template <class Signatures>
struct value_tuple;
template <class... Values, class... Rest>
struct value_tuple<completion_signatures<set_value_t(Values...), Rest...>> {
    using type = std::tuple<Values...>;
};

template <class Values>
struct waiting {
    std::optional<Values> values;
    std::atomic<bool> over{false};
};

template <class Values>
struct waiting_receiver {
    using receiver_concept = receiver_t;

    void set_value(auto&&... values) && noexcept {
        at->values.emplace(std::forward<decltype(values)>(values)...);
        finish();
    }
    void set_stopped() && noexcept { finish(); }
    void finish() noexcept {
        // The state, and this receiver, may be destroyed as soon as `over` is true; notify needs
        // only its address.
        std::atomic<bool>& over = at->over;
        over.store(true, std::memory_order_release);  // pairs with the wait in sync_wait
        over.notify_one();
    }

    waiting<Values>* at;
};

}  // namespace detail

/// Waits for another thread. Returns the values, or std::nullopt if stopped. Errors must be mapped
/// before.
template <sender S>
auto sync_wait(S from) {
    using values_type = typename detail::value_tuple<signatures_of<S>>::type;
    detail::waiting<values_type> here;
    auto state = connect(std::move(from), detail::waiting_receiver<values_type>{&here});
    start(state);
    here.over.wait(false, std::memory_order_acquire);
    return std::move(here.values);
}

}  // namespace execution_model
