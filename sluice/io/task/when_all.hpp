#pragma once

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/io/task/task.hpp"

namespace sluice::io {

namespace detail {

// Resumes a parent when the last of its children has finished. The children return to the thread of
// the parent's multiplexer to finish, if that is known.
class join_latch final : private task_listener {
public:
    // One more than the children: the parent's own part, so that it is not resumed while it still
    // starts them.
    explicit join_latch(std::size_t children) noexcept : left_(children + 1) {}

    void set_parent(std::coroutine_handle<> parent) noexcept { parent_ = parent; }
    template <class T>
    void start(const task<T>& child, cancel_scope* scope, io_multiplexer* home) noexcept {
        ENSURE(child.is_valid(), "a task that was moved from has nothing to await");
        child.frame().promise().inherit_scope(scope);
        child.frame().promise().set_home(home);
        child.frame().promise().set_listener(*this);
        child.frame().resume();
    }
    // Returns whether this was the last. acq_rel: the last child sees the writes of all others.
    [[nodiscard]] bool arrive() noexcept { return left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
    std::coroutine_handle<> task_finished(task_promise_base&) noexcept override {
        return arrive() ? parent_ : std::noop_coroutine();
    }

    std::atomic<std::size_t> left_;
    std::coroutine_handle<> parent_;
};

template <class T>
struct result_in_tuple {
    using type = T;
    static T take(task<T>& finished) { return finished.take_result(); }
};
template <>
struct result_in_tuple<void> {
    using type = std::monostate;
    static std::monostate take(task<void>& finished) {
        finished.take_result();
        return {};
    }
};

template <class... Ts>
class [[nodiscard]] tuple_join {
public:
    explicit tuple_join(task<Ts>&&... children) noexcept
        : children_(std::move(children)...), latch_(sizeof...(Ts)) {}

    [[nodiscard]] static constexpr bool await_ready() noexcept { return sizeof...(Ts) == 0; }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        latch_.set_parent(parent);
        cancel_scope* const scope = scope_of(parent);
        io_multiplexer* const home = place_of(parent);
        std::apply([&](const auto&... child) { (latch_.start(child, scope, home), ...); }, children_);
        return not latch_.arrive();
    }
    [[nodiscard]] std::tuple<typename result_in_tuple<Ts>::type...> await_resume() {
        return std::apply(
            [](auto&... child) {
                return std::tuple<typename result_in_tuple<Ts>::type...>(result_in_tuple<Ts>::take(child)...);
            },
            children_);
    }

private:
    std::tuple<task<Ts>...> children_;
    join_latch latch_;
};

template <class T>
class [[nodiscard]] span_join {
public:
    explicit span_join(std::span<task<T>> children) noexcept : children_(children), latch_(children.size()) {}

    [[nodiscard]] bool await_ready() const noexcept { return children_.empty(); }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        latch_.set_parent(parent);
        cancel_scope* const scope = scope_of(parent);
        io_multiplexer* const home = place_of(parent);
        for (const task<T>& child : children_)
            latch_.start(child, scope, home);
        return not latch_.arrive();
    }
    static void await_resume() noexcept {}

private:
    std::span<task<T>> children_;
    join_latch latch_;
};

}  // namespace detail

/// Runs tasks concurrently and waits for all of them, whatever their results: `auto [a, b] =
/// co_await when_all(first(), second());`. A void result is a std::monostate. They start in order,
/// each up to its first wait, and run in the scope of the task that awaits them. A failure of one
/// ends no other: for that, give them a scope and cancel it. Throws: the exception of the first of
/// them that threw. Allocates: nothing. Suspends: until the last has finished.
template <class... Ts>
[[nodiscard]] auto when_all(task<Ts>... children) noexcept {
    return detail::tuple_join<Ts...>(std::move(children)...);
}

/// The same for any number of tasks; the results stay in the tasks: `take_result()`. Each task at
/// most once.
template <class T>
[[nodiscard]] auto when_all(std::span<task<T>> children) noexcept {
    return detail::span_join<T>(children);
}

/// The same, returning the results in order. Allocates: their vector.
template <class T>
    requires(not std::is_void_v<T> and not std::is_reference_v<T>)
[[nodiscard]] task<std::vector<T>> when_all(std::vector<task<T>> children) noexcept {
    co_await when_all(std::span(children));
    std::vector<T> results;
    results.reserve(children.size());
    for (task<T>& child : children)
        results.push_back(child.take_result());
    co_return results;
}

namespace detail {

// As join_latch; the first to finish cancels the others.
class race_latch final : private task_listener {
public:
    // One more than the children, as in join_latch.
    explicit race_latch(std::size_t children) noexcept : left_(children + 1) {}
    // There are children left only if the frame that waits for them is destroyed, which their own
    // operations report.
    ~race_latch() { inside_.let_go(); }

    void set_parent(std::coroutine_handle<> parent, cancel_scope* outer) noexcept {
        parent_ = parent;
        if (outer != nullptr) inside_.nest_in(*outer);
    }
    template <class T>
    void start(const task<T>& child, io_multiplexer* home) noexcept {
        ENSURE(child.is_valid(), "a task that was moved from has nothing to await");
        child.frame().promise().inherit_scope(&inside_);
        child.frame().promise().set_home(home);
        child.frame().promise().set_listener(*this);
        child.frame().resume();
    }
    // relaxed: the parent calls this after arrive().
    [[nodiscard]] const task_promise_base* first() const noexcept {
        return first_.load(std::memory_order_relaxed);
    }
    // Returns whether this was the last; acq_rel as in join_latch.
    [[nodiscard]] bool arrive() noexcept { return left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
    std::coroutine_handle<> task_finished(task_promise_base& finished) noexcept override {
        const task_promise_base* none = nullptr;
        // relaxed: only the order of this word matters here.
        if (first_.compare_exchange_strong(none, &finished, std::memory_order_relaxed)) inside_.cancel();
        return arrive() ? parent_ : std::noop_coroutine();
    }

    cancel_scope inside_;
    std::atomic<std::size_t> left_;
    std::atomic<const task_promise_base*> first_{nullptr};
    std::coroutine_handle<> parent_;
};

template <class T>
class [[nodiscard]] span_race {
public:
    explicit span_race(std::span<task<T>> children) noexcept : children_(children), latch_(children.size()) {
        ENSURE(not children.empty(), "a race of none has no winner");
    }

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        latch_.set_parent(parent, scope_of(parent));
        io_multiplexer* const home = place_of(parent);
        for (const task<T>& child : children_)
            latch_.start(child, home);
        return not latch_.arrive();
    }
    [[nodiscard]] std::size_t await_resume() const noexcept {
        std::size_t index = 0;
        while (&children_[index].frame().promise() != latch_.first())
            ++index;
        return index;
    }

private:
    std::span<task<T>> children_;
    race_latch latch_;
};

}  // namespace detail

/// Runs tasks concurrently until the first has finished, cancels the I/O of the others, and waits
/// until they have ended. Returns the index of the first. Every task has a result to take: one that
/// lost may have succeeded as well. At least one task. Allocates: nothing.
template <class T>
[[nodiscard]] auto race(std::span<task<T>> children) noexcept {
    return detail::span_race<T>(children);
}

}  // namespace sluice::io
