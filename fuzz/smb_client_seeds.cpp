// Writes the seeds of smb_client: the messages of our server to the client of the target, with each
// dialect. Run `sluice_smb_client_seeds fuzz/seeds` after a change of either.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "fuzz/smb_client_answer.hpp"
#include "fuzz/smb_client_life.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "tests/smb_client/relay.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace {

using namespace sluice;

// The hostile server has no keys, so its replies mark the client as a guest, which has none either.
constexpr std::size_t session_flags_offset = smb::wire::header_bytes + 2;

class recorder {
public:
    explicit recorder(std::uint8_t choice) { bytes_.push_back(static_cast<char>(choice)); }

    void hear(bytes_view frame) {
        if (smb::wire::kind_of_frame(frame) == smb::wire::frame_kind::compressed) {
            add({.form = le8(3),
                 .status = {},
                 .credits = {},
                 .hundreds_of_zeros = {},
                 .length = le16(static_cast<std::uint16_t>(frame.size()))},
                {reinterpret_cast<const char*>(frame.data()), frame.size()});
            return;
        }
        smb::wire::compound_reader messages(frame, 16);
        while (not messages.done())
            hear_message(*messages.next());
    }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
    void hear_message(const smb::wire::message_view& message) {
        const auto& header = message.header();
        if (header.status == smb::wire::nt_status::pending) {
            takes_its_time_ = true;
            return;
        }
        std::string body(reinterpret_cast<const char*>(message.body().data()), message.body().size());
        const bool ends_logon = header.command == smb::wire::command::session_setup and
                                header.status == smb::wire::nt_status::success;
        if (ends_logon) body[session_flags_offset - smb::wire::header_bytes] = 1;
        std::size_t zeros = 0;
        while (body.size() > 100 and body.find_first_not_of('\7', body.size() - 100) == std::string::npos) {
            body.resize(body.size() - 100);  // data that was read: its content does not matter
            ++zeros;
        }
        const bool took_its_time = std::exchange(takes_its_time_, false);
        const fuzz::answer_head head{.form = le8(took_its_time ? 5 : 1),
                                     .status = le32(static_cast<std::uint32_t>(header.status)),
                                     .credits = le16(header.credits),
                                     .hundreds_of_zeros = le8(static_cast<std::uint8_t>(zeros)),
                                     .length = le16(static_cast<std::uint16_t>(body.size()))};
        add(head, body);
    }
    void add(const fuzz::answer_head& head, std::string_view body) {
        bytes_.append(reinterpret_cast<const char*>(&head), sizeof head).append(body);
    }

    std::string bytes_;
    bool takes_its_time_ = false;
};

std::string record(std::uint8_t choice) {
    recorder heard(choice);
    smb_simulation::world world({.seed = 1}, 1,
                                [](smb::server::server_configuration& of) { of.compresses = true; });
    smb::client::client_life client(*world.loop, world.clock,
                                    smb::client::client_life::dialects[choice & 3U]);
    {
        smb_client_testing::relay between(*world.loop, world.connect(),
                                          [&](const std::vector<std::byte>& frame) { heard.hear(frame); });
        world.clients.spawn(client.live(between.take_clients_end()));
        while (world.clients.size() != 0 and world.loop->run().value_or(0) > 0) {}
    }
    world.stop();
    std::fprintf(stderr, "dialect %u: %u steps, %zu bytes\n", choice, client.steps(), heard.bytes().size());
    return heard.bytes();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s fuzz/seeds\n", argv[0]);
        return 2;
    }
    const std::filesystem::path directory = std::filesystem::path(argv[1]) / "smb_client";
    std::filesystem::create_directories(directory);
    for (std::uint8_t choice = 0; choice != 4; ++choice)
        std::ofstream(directory / ("dialect_" + std::to_string(choice)), std::ios::binary) << record(choice);
    return 0;
}
