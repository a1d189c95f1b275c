#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/session.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::smb_client_testing {

/// A session of several channels, over which workers read and write one file at random, each in its
/// own part of it, while channels are killed and replaced. The expected content of the whole file
/// is known, so bytes that are lost, reappear, or are written again after newer ones are detected:
/// by the next read of them, or by reading everything at the end.
///
/// Thread safety: the loop's thread.
class channel_storm {
public:
    struct options {
        std::uint64_t seed = 1;
        std::string share = "files";
        std::string file = "storm";
        unsigned channels = 4;
        unsigned workers = 6;
        std::chrono::microseconds kill_every_max{20'000};
        smb::client::connection_options connection{};
    };
    struct tally {
        std::uint64_t reads = 0;
        std::uint64_t writes = 0;
        std::uint64_t bytes = 0;
        std::uint64_t kills = 0;
        std::string problem;  // the first problem
    };
    using dialler =
        std::function<io::task<smb::client::outcome<smb::client::not_null_ptr<smb::client::connection>>>(
            const smb::client::connection_options&)>;

    channel_storm(smb::client::dependencies world, dialler dial, smb::auth::credentials who, options how)
        : world_(world),
          dial_(std::move(dial)),
          who_(std::move(who)),
          how_(std::move(how)),
          random_(how_.seed) {
        how_.connection.channels = how_.channels;
        how_.connection.offers_gmac = false;  // it binds channels more often than there are message
                                              // ids for GMAC
    }

    /// Runs until `is_over`, which each worker checks before every operation.
    io::task<void> run(std::function<bool()> is_over) {
        auto beginning = begin();
        const bool has_begun = co_await std::move(beginning);
        if (has_begun) {
            auto raging = rage(std::move(is_over));
            co_await std::move(raging);
            auto looking = look_at_everything();
            co_await std::move(looking);
            auto close_task = file_->co_close();
            if (const auto closed = co_await std::move(close_task); not closed)
                record_problem("close: " + closed.error().message());
        }
        file_.reset();
        tree_.reset();
        session_.reset();
        for (const auto& each : connections_) {
            auto close_task = each->close();
            co_await std::move(close_task);
        }
        connections_.clear();
    }
    [[nodiscard]] const tally& result() const noexcept { return tally_; }

private:
    static constexpr std::size_t part_bytes = 512U << 10;
    static constexpr std::size_t piece_bytes_max =
        100'000;  // larger than one credit, and large enough for direct reads

    struct worker {
        worker(std::uint64_t offset, std::uint64_t seed)
            : offset_bytes(offset), known(part_bytes), random(seed) {}

        std::uint64_t offset_bytes;
        std::vector<std::byte> known;
        seeded_random random;
    };

    void record_problem(const std::string& what) {
        if (tally_.problem.empty()) tally_.problem = what;
    }

    io::task<bool> begin() {
        auto first = add_connection();
        if (not co_await std::move(first)) co_return false;
        how_.connection.client_guid = connections_.front()->agreed().client_guid;
        auto logging_on = smb::client::session::log_on(*connections_.front(), who_);
        auto logged_on = co_await std::move(logging_on);
        if (not logged_on) {
            record_problem(logged_on.error().message());
            co_return false;
        }
        session_ = logged_on->release();
        auto connecting = smb::client::tree::connect(*session_, how_.share);
        auto connected = co_await std::move(connecting);
        if (not connected) {
            record_problem(connected.error().message());
            co_return false;
        }
        tree_ = connected->release();
        while (session_->channels().size() != how_.channels) {
            auto binding = add_channel();
            if (not co_await std::move(binding)) co_return false;
        }
        auto opening =
            tree_->open(how_.file, {.access = smb::wire::file_generic_read | smb::wire::file_generic_write,
                                    .disposition = smb::wire::create_disposition::overwrite_if});
        auto opened = co_await std::move(opening);
        if (not opened) {
            record_problem(opened.error().message());
            co_return false;
        }
        file_ = opened->release();
        auto sizing = file_->set_size(how_.workers * part_bytes);
        const auto sized = co_await std::move(sizing);
        if (not sized) record_problem(sized.error().message());
        co_return sized.has_value();
    }

    io::task<bool> add_connection() {
        auto dialling = dial_(how_.connection);
        auto dialled = co_await std::move(dialling);
        if (not dialled) {
            record_problem(dialled.error().message());
            co_return false;
        }
        connections_.push_back(dialled->release());
        co_return true;
    }

    io::task<bool> add_channel() {
        auto connecting = add_connection();
        if (not co_await std::move(connecting)) co_return false;
        auto binding = session_->bind(*connections_.back(), who_);
        const auto bound = co_await std::move(binding);
        if (not bound) record_problem(bound.error().message());
        co_return bound.has_value();
    }

    io::task<void> rage(std::function<bool()> is_over) {
        io::task_group workers(world_.loop);
        for (unsigned i = 0; i != how_.workers; ++i)
            parts_.emplace_back(i * part_bytes, how_.seed * 1000 + i);
        for (worker& each : parts_)
            workers.spawn(work(each, is_over));
        io::task_group killers(world_.loop);
        killers.spawn(kill());
        co_await workers.join();
        is_calm_ = true;
        co_await killers.join();
    }

    io::task<void> work(worker& one, const std::function<bool()>& is_over) {
        std::vector<std::byte> room(piece_bytes_max);
        while (not is_over() and tally_.problem.empty()) {
            const std::size_t bytes = 1 + one.random.below(piece_bytes_max);
            const std::size_t at = one.random.below(part_bytes - bytes + 1);
            const std::span<std::byte> piece = std::span(room).first(bytes);
            if (one.random.below(16) == 0) {
                auto setting = file_->set_times(
                    {.written = smb::wire::filetime(smb::wire::filetime_ticks_at_unix_epoch)});
                if (const auto set = co_await std::move(setting); not set)
                    record_problem(set.error().message());
            } else if (one.random.below(2) == 0) {
                auto writing = write(one, at, piece);
                co_await std::move(writing);
            } else {
                auto reading = read(one, at, piece);
                co_await std::move(reading);
            }
        }
    }

    io::task<void> write(worker& one, std::size_t at, std::span<std::byte> piece) {
        // In the order of the numbers, so that every byte differs from its previous value.
        for (std::byte& each : piece)
            each = static_cast<std::byte>(one.random.next_u64());
        auto writing = file_->co_write(piece, one.offset_bytes + at);
        const auto wrote = co_await std::move(writing);
        if (not wrote or *wrote != piece.size()) {
            record_problem(wrote ? "a write fell short" : wrote.error().message());
            co_return;
        }
        std::ranges::copy(piece, one.known.begin() + static_cast<std::ptrdiff_t>(at));
        ++tally_.writes;
        tally_.bytes += piece.size();
    }

    io::task<void> read(const worker& one, std::size_t at, std::span<std::byte> piece) {
        auto reading = file_->co_read(piece, one.offset_bytes + at);
        const auto got = co_await std::move(reading);
        if (not got or *got != piece.size()) {
            record_problem(got ? "a read fell short" : got.error().message());
            co_return;
        }
        if (not std::ranges::equal(piece, std::span(one.known).subspan(at, piece.size())))
            record_problem("the bytes differ from those written last");
        ++tally_.reads;
        tally_.bytes += piece.size();
    }

    // Kills one channel after the other, but never the last. Its requests in flight are repeated on
    // other channels, possibly before the server has detected the loss.
    io::task<void> kill() {
        while (not is_calm_) {
            const std::chrono::microseconds pause(
                random_.below(static_cast<std::uint64_t>(how_.kill_every_max.count())));
            (void)co_await io::co_sleep(world_.loop, deadline(pause));
            const std::size_t which = random_.below(connections_.size());
            connections_[which]->break_soon(smb::client::client_error::of_io("be killed", ECONNRESET));
            ++tally_.kills;
            if (random_.below(2) == 0) {
                const std::chrono::microseconds later(random_.below(2000));
                (void)co_await io::co_sleep(world_.loop, deadline(later));
            }
            session_->forget_lost();
            const std::unique_ptr<smb::client::connection> lost = std::move(connections_[which]);
            connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(which));
            auto close_task = lost->close();
            co_await std::move(close_task);
            auto replacing = add_channel();
            if (not co_await std::move(replacing)) co_return;
        }
    }

    io::task<void> look_at_everything() {
        std::vector<std::byte> room(65536);
        for (const worker& each : parts_) {
            for (std::size_t at = 0; at != part_bytes; at += room.size()) {
                auto reading = read(each, at, room);
                co_await std::move(reading);
            }
        }
    }

    smb::client::dependencies world_;
    dialler dial_;
    smb::auth::credentials who_;
    options how_;
    seeded_random random_;
    tally tally_;
    bool is_calm_ = false;
    std::vector<std::unique_ptr<smb::client::connection>> connections_;
    std::unique_ptr<smb::client::session> session_;
    std::unique_ptr<smb::client::tree> tree_;
    std::unique_ptr<smb::client::remote_file> file_;
    std::deque<worker> parts_;
};

}  // namespace sluice::smb_client_testing
