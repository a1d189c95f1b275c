#include "sluice/smb/server/net/pipe_turn.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/server/operation/session_life.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

// Requests on named pipes while earlier ones are in progress.

namespace sluice::smb_simulation {
namespace {

// A request in progress on a pipe, until it ends.
class request_in_progress {
public:
    request_in_progress(world& where, server::named_pipe& at) : at_(at), granted_(*where.loop) {
        EXPECT_TRUE(at_.requests.lock(place_));
    }
    ~request_in_progress() { end(); }
    void end() noexcept { at_.requests.unlock(place_); }

private:
    server::named_pipe& at_;
    server::one_shot_event<nt_status> granted_;
    server::fifo_lock::lock_request place_{granted_};
};

// A request on a pipe that the loop processes, until it ends.
class request_of_loop {
public:
    request_of_loop(world& where, server::pipe_queue& at, const server::client_reference& by)
        : granted_(*where.loop), place_(at, by, granted_) {
        EXPECT_TRUE(place_.is_granted());
    }

private:
    server::one_shot_event<nt_status> granted_;
    server::pipe_queue::place place_;
};

class requests_on_pipes : public command_test {
protected:
    requests_on_pipes() { where_.admit(std::vector<std::string>{"u", "other"}); }

    server::pipe_queue& queue_of_loop() { return server_of_test().context().loops().front()->pipe_requests; }
    // Ends the session of the client, as an administrator does.
    void end_session_of_client() {
        const auto of = server_of_test().context().find_session(client().current_ids().session);
        ASSERT_NE(of, nullptr);
        EXPECT_TRUE(server::end_session(server_of_test().context(), *of, false));
    }
    std::shared_ptr<server::open> open_of(const wire::file_id& pipe) {
        return server_of_test().context().opens.find(pipe);
    }
    // A request for which each pipe has an answer.
    std::uint64_t send_write(const wire::file_id& to) {
        return client().send(command::write, wire::write_args{.file = to, .data = bind_});
    }
    std::uint64_t send_read(const wire::file_id& from) {
        return client().send(command::read, wire::read_args{.file = from, .length_bytes = 1000});
    }
    std::uint64_t send_close(const wire::file_id& pipe) {
        return client().send(command::close, wire::close_args{.file = pipe});
    }
    nt_status outcome_of(std::uint64_t sent) { return client().answer_to(sent).status(); }

    std::vector<std::byte> bind_ = wire::encode_srvsvc_bind(1);
};

TEST_F(requests_on_pipes, let_a_read_in_a_compound_wait_for_the_write_before_it) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_in_progress earlier(where_, *one->pipe);
    const std::uint64_t written = send_write(pipe);
    client().begin_compound();
    const std::uint64_t read = send_read(pipe);
    const std::uint64_t closed = send_close(pipe);
    client().end_compound();
    EXPECT_FALSE(client().is_answered(written) or client().is_answered(read));
    earlier.end();
    EXPECT_EQ(outcome_of(written), nt_status::success);
    EXPECT_EQ(outcome_of(read), nt_status::success);
    EXPECT_EQ(outcome_of(closed), nt_status::success);
}

TEST_F(requests_on_pipes, reject_a_read_in_a_compound_for_which_no_request_has_an_answer) {
    const wire::file_id pipe = open_pipe();
    client().begin_compound();
    const std::uint64_t read = send_read(pipe);
    const std::uint64_t closed = send_close(pipe);
    client().end_compound();
    EXPECT_EQ(outcome_of(read), nt_status::internal_error);
    EXPECT_EQ(outcome_of(closed), nt_status::success);
}

TEST_F(requests_on_pipes, are_processed_before_a_close_that_follows_them) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_in_progress earlier(where_, *one->pipe);
    const std::uint64_t written = send_write(pipe);
    const std::uint64_t closed = send_close(pipe);
    EXPECT_FALSE(client().is_answered(written) or client().is_answered(closed));
    earlier.end();
    EXPECT_EQ(outcome_of(written), nt_status::success);
    EXPECT_EQ(outcome_of(closed), nt_status::success);
    EXPECT_TRUE(one->has_ended());
}

TEST_F(requests_on_pipes, show_their_answers_to_a_peek_that_follows_them) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_in_progress earlier(where_, *one->pipe);
    const std::uint64_t written = send_write(pipe);
    const std::uint64_t peeked = client().send(
        command::ioctl,
        wire::ioctl_args{.code = wire::control_code::pipe_peek, .file = pipe, .output_bytes_max = 16});
    EXPECT_FALSE(client().is_answered(peeked));
    earlier.end();
    EXPECT_EQ(outcome_of(written), nt_status::success);
    const auto said = client().answer_to(peeked);
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_NE(output_of_control(said).take_at<le32>(4)->value(), 0U) << "bytes to read";
}

TEST_F(requests_on_pipes, fail_if_they_follow_a_close) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_in_progress earlier(where_, *one->pipe);
    const std::uint64_t closed = send_close(pipe);
    const std::uint64_t written = send_write(pipe);
    EXPECT_FALSE(client().is_answered(written));
    earlier.end();
    EXPECT_EQ(outcome_of(closed), nt_status::success);
    EXPECT_EQ(outcome_of(written), nt_status::file_closed);
}

TEST_F(requests_on_pipes, end_with_their_session_while_the_pipe_is_busy) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_in_progress earlier(where_, *one->pipe);
    const std::uint64_t written = send_write(pipe);
    EXPECT_FALSE(client().is_answered(written));
    end_session_of_client();
    EXPECT_EQ(outcome_of(written), nt_status::user_session_deleted);
}

TEST_F(requests_on_pipes, end_with_their_session_while_the_loop_is_busy) {
    const wire::file_id pipe = open_pipe();
    const std::shared_ptr<server::open> one = open_of(pipe);
    request_of_loop earlier(where_, queue_of_loop(), server_of_test().context().quotas.user("other"));
    const std::uint64_t written = send_write(pipe);
    EXPECT_FALSE(client().is_answered(written));
    end_session_of_client();
    EXPECT_EQ(outcome_of(written), nt_status::user_session_deleted);
    request_in_progress next(where_, *one->pipe);  // the pipe is free again
}

TEST_F(requests_on_pipes, let_users_take_turns) {
    constexpr std::size_t many = 40;
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("other", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("IPC$"), nt_status::success);
    const wire::file_id of_other = other.create("srvsvc").file;
    client().credits_wanted = many + 10;
    std::vector<wire::file_id> pipes{open_pipe()};
    while (pipes.size() != many)
        pipes.push_back(client().create("srvsvc").file);
    std::vector<std::uint64_t> sent;
    std::uint64_t written = 0;
    {
        const request_of_loop earlier(where_, queue_of_loop(), server_of_test().context().quotas.user("u"));
        for (const wire::file_id& pipe : pipes)
            sent.push_back(send_write(pipe));
        written = other.send(command::write, wire::write_args{.file = of_other, .data = bind_});
        EXPECT_FALSE(other.is_answered(written) or client().is_answered(sent.front()));
    }
    EXPECT_EQ(other.answer_to(written).status(), nt_status::success);
    const auto has_answer = [&](const wire::file_id& pipe) { return open_of(pipe)->pipe->has_answer(); };
    EXPECT_FALSE(std::ranges::all_of(pipes, has_answer)) << "the other user waits for a few only";
    for (const std::uint64_t one : sent)
        EXPECT_EQ(outcome_of(one), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
