// Receive streams over the simulated multiplexer: short reads, spurious and late events, cancels at
// any moment, errors, and few buffers, drawn from a seed. A failed test prints the seed.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/stream/co_receive.hpp"
#include "sluice/io/stream/receive_stream.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "tests/simulation.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;

using testing_by_simulation::replayable;

constexpr std::size_t seed_count = 40;

// A stream, its sender, and a receiver that keeps some of its buffers for a while.
class conversation {
public:
    conversation(simulation_options options, receive_pool_size size)
        : random_(options.seed),
          multiplexer_(make_simulated_multiplexer(std::move(options)).value()),
          pair_(socket_handle::pair().value()),
          pool_(receive_pool::make(*multiplexer_, size).value()) {
        pair_.first.set_multiplexer(multiplexer_.get()).value();
        pair_.second.set_multiplexer(multiplexer_.get()).value();
        stream_.emplace(pair_.second, pool_, collector{this});
    }

    // Sends all of it, in segments, sometimes cancels the stream and starts it again, until the end
    // or an error.
    void run(const std::vector<std::byte>& all, permille cancels) {
        stream_->start();
        std::size_t sent = 0;
        bool is_shut = false;
        for (int idle = 0; not is_over() and idle < 1000; ++idle) {
            if (sent < all.size()) {
                const std::size_t some = std::min<std::size_t>(1 + random_() % 100, all.size() - sent);
                const ssize_t moved = ::send(pair_.first.descriptor(), all.data() + sent, some, MSG_DONTWAIT);
                if (moved > 0) sent += static_cast<std::size_t>(moved);
            } else if (not is_shut) {
                is_shut = true;
                ASSERT_TRUE(pair_.first.shutdown(direction::out).has_value());
            }
            if (random_() % 1000 < cancels) stream_->cancel();
            if (multiplexer_->try_run(1 + static_cast<int>(random_() % 4)).value_or(0) > 0) idle = 0;
            if (not kept_.empty() and random_() % 3 == 0) {
                kept_.erase(kept_.begin());
                idle = 0;
            }
        }
        ASSERT_TRUE(is_over()) << multiplexer_->stalled();
        // At the end, the buffers in use are exactly those kept here.
        EXPECT_EQ(pool_.in_use(), kept_.size());
        kept_.clear();
        EXPECT_EQ(pool_.in_use(), 0U);
        EXPECT_EQ(multiplexer_->pending(), 0U);
    }

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] int code() const { return code_; }
    [[nodiscard]] std::uint64_t digest() const { return multiplexer_->digest(); }

private:
    struct collector {
        conversation* self;
        void set_value(result<received_buffer>&& outcome) noexcept { self->take(std::move(outcome)); }
        void set_done() noexcept { self->go_on(); }
    };

    void take(result<received_buffer>&& outcome) noexcept {
        EXPECT_FALSE(is_over()) << "a value after the last";
        if (not outcome) {
            code_ = outcome.error().code();
        } else if (outcome->empty()) {
            has_ended_ = true;
        } else {
            text_ += string_of(outcome->bytes());
            if (random_() % 2 == 0) kept_.push_back(std::move(*outcome));
        }
    }
    void go_on() noexcept {
        if (code_ == ECANCELED) {
            code_ = 0;
            stream_->start();
        } else {
            is_done_ = true;
        }
    }
    [[nodiscard]] bool is_over() const { return is_done_; }

    std::minstd_rand random_;
    std::unique_ptr<simulated_multiplexer> multiplexer_;
    socket_handle::connected_pair pair_;
    receive_pool pool_;
    std::string text_;
    int code_ = 0;
    bool has_ended_ = false;
    bool is_done_ = false;
    std::vector<received_buffer> kept_;
    std::optional<receive_stream<collector>> stream_;
};

TEST(receive_stream_simulated, every_byte_arrives_in_order_however_rough_it_is) {
    const auto all = pattern(3000);
    for (const std::uint64_t seed : testing_by_simulation::seeds(seed_count)) {
        const replayable replay(seed);
        conversation talk(simulation_options::adversarial(seed), {.count = 3, .bytes_each = 17});
        talk.run(all, 0);
        ASSERT_TRUE(talk.text() == string_of(all)) << talk.text().size();
        ASSERT_EQ(talk.code(), 0);
    }
}

TEST(receive_stream_simulated, cancelled_repeatedly_it_loses_nothing) {
    const auto all = pattern(3000);
    for (const std::uint64_t seed : testing_by_simulation::seeds(seed_count)) {
        const replayable replay(seed);
        conversation talk(simulation_options::adversarial(seed), {.count = 2, .bytes_each = 50});
        talk.run(all, 200);
        ASSERT_TRUE(talk.text() == string_of(all)) << talk.text().size();
    }
}

TEST(receive_stream_simulated, one_buffer_that_is_often_away_is_enough) {
    const auto all = pattern(500);
    for (const std::uint64_t seed : testing_by_simulation::seeds(seed_count)) {
        const replayable replay(seed);
        conversation talk(simulation_options::adversarial(seed), {.count = 1, .bytes_each = 5});
        talk.run(all, 50);
        ASSERT_TRUE(talk.text() == string_of(all)) << talk.text().size();
    }
}

TEST(receive_stream_simulated, an_error_ends_it_after_the_bytes_before_it) {
    const auto all = pattern(3000);
    int failed = 0;
    for (const std::uint64_t seed : testing_by_simulation::seeds(seed_count)) {
        const replayable replay(seed);
        auto options = simulation_options::adversarial(seed);
        options.errors.push_back(
            {.on = operation_kind::read, .of = {}, .code = ECONNRESET, .chance = 20, .breaks = true});
        conversation talk(std::move(options), {.count = 3, .bytes_each = 17});
        talk.run(all, 20);
        ASSERT_TRUE(string_of(all).starts_with(talk.text()));
        if (talk.code() == 0) {
            ASSERT_EQ(talk.text().size(), all.size());
        } else {
            ASSERT_EQ(talk.code(), ECONNRESET);
            ++failed;
        }
    }
    EXPECT_TRUE(failed > 0 or testing_by_simulation::seed_to_replay())
        << "no seed has made it fail: this test tests nothing";
}

TEST(receive_stream_simulated, a_seed_is_replayed_event_for_event) {
    const auto all = pattern(1000);
    const auto digest_of = [&](std::uint64_t seed) {
        conversation talk(simulation_options::adversarial(seed), {.count = 2, .bytes_each = 50});
        talk.run(all, 100);
        return talk.digest();
    };
    EXPECT_EQ(digest_of(7), digest_of(7));
    EXPECT_NE(digest_of(7), digest_of(8));
}

// A coroutine instead of the receiver.
task<int> hear(socket_handle& from, receive_pool& pool, std::string& text) {
    for (;;) {
        const auto piece = co_await co_receive(from, pool);
        if (not piece) co_return piece.error().code();
        if (piece->empty()) co_return 0;
        text += string_of(piece->bytes());
    }
}

TEST(receive_stream_simulated, a_coroutine_receives_every_byte_however_rough_it_is) {
    const auto all = pattern(3000);
    for (const std::uint64_t seed : testing_by_simulation::seeds(seed_count)) {
        const replayable replay(seed);
        const auto multiplexer = make_simulated_multiplexer(simulation_options::adversarial(seed)).value();
        auto pair = socket_handle::pair().value();
        ASSERT_TRUE(pair.second.set_multiplexer(multiplexer.get()).has_value());
        auto pool = receive_pool::make(*multiplexer, {.count = 1, .bytes_each = 100}).value();
        ASSERT_EQ(pair.first.write({.buffers = all}).bytes_transferred(), all.size());
        ASSERT_TRUE(pair.first.shutdown(direction::out).has_value());
        std::string text;
        ASSERT_EQ(sync_wait(*multiplexer, hear(pair.second, pool, text)), 0);
        ASSERT_TRUE(text == string_of(all));
        ASSERT_EQ(pool.in_use(), 0U);
    }
}

}  // namespace
}  // namespace sluice::io
