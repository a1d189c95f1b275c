#include <gtest/gtest.h>

#include "sluice/smb/server/open/open_state_word.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

using state_word = smb::server::basic_open_state_word<scheduled_atomics>;

// One open, with what its duties are done to.
class open_life : public scenario {
public:
    explicit open_life(bool is_committed) {
        if (is_committed) (void)state_.commit();
    }

protected:
    void create() {
        if (state_.commit()) return;
        leave_file();
        end_use();
    }
    void close() {
        ++ends_;
        const state_word::ending how = state_.end();
        if (how != state_word::ending::lost) ++wins_;
        if (how != state_word::ending::now) return;
        leave_file();
        end_use();
    }
    void write() {
        if (not state_.try_use()) return;
        if (state_.begin_change()) {
            ++changing_;
            step();
            if (has_left_) problem_ = "a file is changed after its open has left it";
            --changing_;
            if (state_.end_change()) {
                leave_file();
                end_use();
            }
        }
        end_use();
    }
    void read() {
        if (not state_.try_use()) return;
        step();
        if (is_discarded_) problem_ = "a discarded node is read";
        end_use();
    }

    std::string verdict() override {
        if (not problem_.empty()) return problem_;
        if (ends_ != 0 and wins_ != 1) return "not one end has won";
        if (ends_ != 0 and not(has_left_ and is_discarded_)) return "an ended open has not been cleaned up";
        return "";
    }

private:
    void leave_file() {
        step();
        if (has_left_) problem_ = "an open leaves its file twice";
        if (changing_ != 0) problem_ = "an open leaves its file during a change";
        has_left_ = true;
    }
    void end_use() {
        if (not state_.end_use()) return;
        if (is_discarded_) problem_ = "a node is discarded twice";
        if (not has_left_) problem_ = "a node is discarded before its open has left the file";
        is_discarded_ = true;
    }

    state_word state_;
    int changing_ = 0;
    int ends_ = 0;
    int wins_ = 0;
    bool has_left_ = false;
    bool is_discarded_ = false;
    std::string problem_;
};

class creation_and_ends final : public open_life {
public:
    creation_and_ends() : open_life(false) {}
    std::vector<std::function<void()>> threads() override {
        return {[this] { create(); }, [this] { close(); }, [this] { write(); }};
    }
};

class transfers_and_ends final : public open_life {
public:
    transfers_and_ends() : open_life(true) {}
    std::vector<std::function<void()>> threads() override {
        return {[this] { write(); }, [this] { read(); }, [this] { close(); }, [this] { close(); }};
    }
};

class two_changes_and_an_end final : public open_life {
public:
    two_changes_and_an_end() : open_life(true) {}
    std::vector<std::function<void()>> threads() override {
        return {[this] { write(); }, [this] { write(); }, [this] { close(); }};
    }
};

template <class Scenario>
void expect_right(const limits& within = {}) {
    const report found = explore([] { return std::make_unique<Scenario>(); }, within);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 50U);
}

TEST(open_state_interleavings, end_during_a_create_is_completed_by_one_of_them) {
    expect_right<creation_and_ends>();
    expect_right<creation_and_ends>({.delays_stores = true});
}

TEST(open_state_interleavings, one_of_two_ends_wins_and_waits_for_changes_but_not_for_reads) {
    expect_right<transfers_and_ends>();
}

TEST(open_state_interleavings, last_of_two_changes_leaves_the_file) {
    expect_right<two_changes_and_an_end>();
}

}  // namespace
}  // namespace sluice::interleave
