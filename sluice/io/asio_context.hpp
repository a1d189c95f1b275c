#pragma once

#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {

/// A multiplexer as an Asio execution context: what Asio's handlers, strands and coroutines run on. It needs
/// ASIO_STANDALONE, and Asio 1.22 or later.
///
/// Owns nothing of the multiplexer, which outlives it; several contexts may share one. Handlers run on the
/// multiplexer's thread, inside its run(), or inside run() here, which also rethrows what they throw; thrown
/// out of a handler that the multiplexer's own run() invokes, an exception ends the program.
/// Thread safety: get_executor(), and executors, from any thread; run() from the multiplexer's. Destroyed
/// when nothing of it is pending any more.
class asio_context : public asio::execution_context {
public:
    template <class Allocator, bool Tracked>
    class basic_executor;
    using executor_type = basic_executor<std::allocator<void>, false>;

    explicit asio_context(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {}
    ~asio_context() {
        shutdown();
        destroy();
    }

    [[nodiscard]] executor_type get_executor() noexcept;
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

    /// Runs the multiplexer until nothing is pending on it. Returns how many operations and posted functions
    /// it has completed. Throws: what a handler throws, and system_error if the kernel refuses to wait; call
    /// it again to continue. Blocks: yes.
    std::size_t run() {
        return run_while([this] { return multiplexer_->run(1); });
    }

    /// As run(), but begins nothing after `within`; and poll() does not wait.
    std::size_t run_for(io_multiplexer::duration within) {
        const auto until = multiplexer_->now() + within;
        return run_while([this, until]() -> result<int> {
            // What is always ready must not keep it from ending.
            if (multiplexer_->now() >= until) return io_multiplexer::nothing_pending;
            return multiplexer_->try_run_until(until, 1);
        });
    }
    std::size_t poll() {
        return run_while([this] { return multiplexer_->try_run(1); });
    }

    /// Whether the calling thread is inside a handler that runs here.
    [[nodiscard]] bool running_in_this_thread() const noexcept {
        return multiplexer_->is_owner() and handlers_running_ > 0;
    }

    /// Runs a handler, on the multiplexer's thread. For what completes operations; not for users.
    template <class Handler>
    void invoke(Handler&& handler) noexcept {
        ++handlers_running_;
        try {
            std::forward<Handler>(handler)();
        } catch (...) {
            if (not rethrows_) std::terminate();
            thrown_.push_back(std::current_exception());
        }
        --handlers_running_;
    }

private:
    // One item at a time, so that no handler runs between one that throws and the return to the caller.
    template <class Run>
    std::size_t run_while(Run&& run_one) {
        ENSURE(not rethrows_, "run() inside a handler");
        std::size_t count = 0;
        rethrows_ = true;
        result<int> last;
        while (thrown_.empty() and (last = run_one()).value_or(0) > 0)
            count += static_cast<std::size_t>(*last);
        rethrows_ = false;
        if (not thrown_.empty()) {
            const std::exception_ptr first = thrown_.front();
            thrown_.erase(thrown_.begin());
            std::rethrow_exception(first);
        }
        if (not last) throw std::system_error(std::error_code(last.error()), last.error().operation());
        return count;
    }

    io_multiplexer* multiplexer_;
    // The multiplexer's thread's.
    int handlers_running_ = 0;
    bool rethrows_ = false;
    std::vector<std::exception_ptr> thrown_;
};

/// An Asio executor on a multiplexer: execute(), and the properties of io_context's executor.
///
/// A function is posted unless blocking is possible (the default) and the caller is inside a handler of the
/// same context already: then it runs at once. With outstanding work tracked, run() waits while one exists.
/// Allocates: one node for a posted function, by the `allocator` property, freed before the function runs.
/// Thread safety: any thread.
template <class Allocator, bool Tracked>
class asio_context::basic_executor {
public:
    explicit basic_executor(asio_context& context, const Allocator& allocator = {}, bool never_blocks = false,
                            bool continues = false) noexcept
        : context_(&context),
          allocator_(allocator),
          never_blocks_(never_blocks),
          continues_(continues),
          work_(*context.multiplexer_) {}
    basic_executor(const basic_executor& other) noexcept
        : basic_executor(*other.context_, other.allocator_, other.never_blocks_, other.continues_) {}
    basic_executor& operator=(const basic_executor& other) noexcept {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, other);
        }
        return *this;
    }
    ~basic_executor() = default;

    template <class Function>
    void execute(Function&& function) const {
        using function_type = std::decay_t<Function>;
        if (not never_blocks_ and context_->running_in_this_thread()) {
            context_->invoke(function_type(std::forward<Function>(function)));
        } else {
            node<function_type>::post(*this, std::forward<Function>(function));
        }
    }

    [[nodiscard]] auto require(asio::execution::blocking_t::possibly_t) const noexcept {
        return basic_executor(*context_, allocator_, false, continues_);
    }
    [[nodiscard]] auto require(asio::execution::blocking_t::never_t) const noexcept {
        return basic_executor(*context_, allocator_, true, continues_);
    }
    [[nodiscard]] auto require(asio::execution::relationship_t::fork_t) const noexcept {
        return basic_executor(*context_, allocator_, never_blocks_, false);
    }
    [[nodiscard]] auto require(asio::execution::relationship_t::continuation_t) const noexcept {
        return basic_executor(*context_, allocator_, never_blocks_, true);
    }
    [[nodiscard]] auto require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
        return basic_executor<Allocator, true>(*context_, allocator_, never_blocks_, continues_);
    }
    [[nodiscard]] auto require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
        return basic_executor<Allocator, false>(*context_, allocator_, never_blocks_, continues_);
    }
    template <class Other>
    [[nodiscard]] auto require(asio::execution::allocator_t<Other> wanted) const noexcept {
        return basic_executor<Other, Tracked>(*context_, wanted.value(), never_blocks_, continues_);
    }
    [[nodiscard]] auto require(asio::execution::allocator_t<void>) const noexcept {
        return basic_executor<std::allocator<void>, Tracked>(*context_, {}, never_blocks_, continues_);
    }

    [[nodiscard]] asio_context& query(asio::execution::context_t) const noexcept { return *context_; }
    [[nodiscard]] static constexpr asio::execution::mapping_t query(asio::execution::mapping_t) noexcept {
        return asio::execution::mapping.thread;
    }
    [[nodiscard]] asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
        if (never_blocks_) return asio::execution::blocking.never;
        return asio::execution::blocking.possibly;
    }
    [[nodiscard]] asio::execution::relationship_t query(asio::execution::relationship_t) const noexcept {
        if (continues_) return asio::execution::relationship.continuation;
        return asio::execution::relationship.fork;
    }
    [[nodiscard]] static constexpr asio::execution::outstanding_work_t query(
        asio::execution::outstanding_work_t) noexcept {
        if constexpr (Tracked) return asio::execution::outstanding_work.tracked;
        return asio::execution::outstanding_work.untracked;
    }
    template <class Other>
    [[nodiscard]] Allocator query(asio::execution::allocator_t<Other>) const noexcept {
        return allocator_;
    }

    [[nodiscard]] friend bool operator==(const basic_executor& a, const basic_executor& b) noexcept {
        return a.context_ == b.context_ and a.allocator_ == b.allocator_ and
               a.never_blocks_ == b.never_blocks_ and a.continues_ == b.continues_;
    }

private:
    // A posted function, in memory of the allocator.
    template <class Function>
    class node final : public posted_item {
        using allocator_type = typename std::allocator_traits<Allocator>::template rebind_alloc<node>;
        using traits = std::allocator_traits<allocator_type>;

    public:
        template <class From>
        node(asio_context& context, const allocator_type& allocator, From&& from)
            : context_(&context), allocator_(allocator), function_(std::forward<From>(from)) {}

        template <class From>
        static void post(const basic_executor& on, From&& from) {
            allocator_type allocator(on.allocator_);
            node* const fresh = traits::allocate(allocator, 1);
            try {
                std::construct_at(fresh, *on.context_, allocator, std::forward<From>(from));
            } catch (...) {
                traits::deallocate(allocator, fresh, 1);
                throw;
            }
            on.context_->multiplexer_->post(*fresh);
        }

    private:
        void invoke() noexcept override {
            asio_context& context = *context_;
            allocator_type allocator(allocator_);
            Function taken(std::move(function_));
            std::destroy_at(this);
            traits::deallocate(allocator, this, 1);
            context.invoke(std::move(taken));
        }

        asio_context* context_;
        allocator_type allocator_;
        Function function_;
    };

    struct no_work {
        explicit no_work(io_multiplexer&) noexcept {}
    };

    asio_context* context_;
    [[no_unique_address]] Allocator allocator_;
    bool never_blocks_;
    bool continues_;
    [[no_unique_address]] std::conditional_t<Tracked, io_multiplexer::work_guard, no_work> work_;
};

inline asio_context::executor_type asio_context::get_executor() noexcept {
    return executor_type(*this);
}

}  // namespace sluice::io
