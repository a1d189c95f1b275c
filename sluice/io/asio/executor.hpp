#pragma once

#include <asio/execution.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/io/asio/context.hpp"

namespace sluice::io {

/// An Asio executor on a multiplexer: execute(), and the properties of io_context's executor.
///
/// A function is posted unless blocking is possible (the default) and the caller is inside a
/// handler of the same context already: then it runs at once. With outstanding work tracked, run()
/// waits while one exists.
/// Allocates: one node for a posted function, by the `allocator` property, freed
/// before the function runs.
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
            on.context_->begin_outstanding();
            on.context_->multiplexer_->post(*fresh);
        }

    private:
        void invoke() noexcept override {
            asio_context& context = *context_;
            allocator_type allocator(allocator_);
            Function taken(std::move(function_));
            std::destroy_at(this);
            traits::deallocate(allocator, this, 1);
            context.end_outstanding();
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
