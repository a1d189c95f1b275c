#pragma once

#include <type_traits>
#include <utility>

// The requirements of our senders on an implementation of std::execution (P2300), of stdexec, or of
// a library with the same interface, without including one.

/// Declares the struct `name`, which describes the names in an implementation. `execution` is the
/// namespace of senders and receivers, `queries` that of get_stop_token; for the standard
/// `std::execution` and `std`, for stdexec twice `stdexec`. `suffix` ends the names of the concept
/// tags: `_t` in P2300R10, `_tag` in later drafts (stdexec has both).
///
/// For an implementation that can query the completion behaviour of a sender, derive a struct from
/// this one with `template <class Signal> using get_completion_behavior` and `static constexpr auto
/// asynchronous`.
#define SLUICE_EXECUTION_TRAITS(name, execution, queries, suffix)                       \
    struct name {                                                                       \
        using sender_concept = execution::sender##suffix;                               \
        using operation_state_concept = execution::operation_state##suffix;             \
        using scheduler_concept = execution::scheduler##suffix;                         \
        using set_value = execution::set_value_t;                                       \
        using set_error = execution::set_error_t;                                       \
        using set_stopped = execution::set_stopped_t;                                   \
        using get_env = execution::get_env_t;                                           \
        using get_stop_token = queries::get_stop_token_t;                               \
        template <class Signal>                                                         \
        using get_completion_scheduler = execution::get_completion_scheduler_t<Signal>; \
        template <class... Signatures>                                                  \
        using completion_signatures = execution::completion_signatures<Signatures...>;  \
    }

namespace sluice {

/// Returns the stop token in the environment of a receiver; if there is none, one that never stops.
template <class Execution, class Receiver>
[[nodiscard]] auto stop_token_of(const Receiver& to) noexcept {
    return typename Execution::get_stop_token{}(typename Execution::get_env{}(to));
}

/// The callback type that calls a `Callback` when a stop is requested of that token.
template <class Execution, class Receiver, class Callback>
using stop_callback_of = typename std::remove_cvref_t<decltype(stop_token_of<Execution>(
    std::declval<const Receiver&>()))>::template callback_type<Callback>;

}  // namespace sluice
