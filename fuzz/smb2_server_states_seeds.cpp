// Writes the first seeds of smb2_server_states, a program for each part of the protocol:
// `sluice_smb2_server_states_seeds fuzz/seeds`. The other seeds there were found by fuzzing.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace {

// The operations of smb2_server_states_fuzz.cpp.
enum operation : std::uint8_t {
    connect,
    drop,
    shut,
    negotiate,
    log_on,
    bind,
    pass,
    reload,
    admit,
    faults,
    check
};
// The requests of state_requests.cpp, from 16 on.
enum request : std::uint8_t {
    tree_connect = 16,
    create = 17,
    close = 21,
    read = 22,
    write = 23,
    lock = 24,
    notify = 26,
    query_directory = 27,
    query_info = 28,
    set_info = 29,
    ioctl = 31,
    cancel = 32,
    acknowledge = 33,
    flush = 34,
    echo = 35,
    tree_disconnect = 135,
    logoff = 215
};
enum envelope : std::uint8_t { plain = 0, is_signed = 4, sealed = 8, replay = 16, goes_on = 128 };
enum dialects : std::uint8_t { smb_2_0_2, smb_2_1, smb_3_0, smb_3_0_2, smb_3_1_1, all };
enum name : std::uint8_t { root = 0, a = 1, b = 2, d = 3, d_c = 4, a_s = 6, a_t = 7, l = 9, pipe = 18 };
enum disposition : std::uint8_t { supersede, open, make, open_if, overwrite, overwrite_if };
constexpr std::uint8_t everything = 64;  // access and sharing
constexpr std::uint8_t directory = 8;    // with a disposition
constexpr std::uint8_t delete_on_close = 16;
constexpr std::uint8_t has_caching = 64;
constexpr std::uint8_t has_contexts = 128;

class script {
public:
    explicit script(std::uint16_t circumstances) {
        add({static_cast<std::uint8_t>(circumstances), static_cast<std::uint8_t>(circumstances >> 8)});
    }
    script& add(std::initializer_list<std::uint8_t> bytes) {
        for (const std::uint8_t one : bytes)
            bytes_.push_back(static_cast<char>(one));
        return *this;
    }
    script& client(std::uint8_t at, std::uint8_t dialect, std::uint8_t user = 0,
                   std::uint8_t algorithms = 0) {
        add({connect, at, negotiate, at, dialect, algorithms, log_on, at, user, 0});
        return share(at, 0);
    }
    script& share(std::uint8_t at, std::uint8_t which) { return add({tree_connect, at, which}); }
    script& file(std::uint8_t at, std::uint8_t name, std::uint8_t how = open_if) {
        return add({create, at, name, everything, how});
    }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
    std::string bytes_;
};

struct seed {
    const char* name;
    script what;
};

const seed seeds[] = {
    {"files", script(0)
                  .client(0, smb_3_0_2)
                  .file(0, a)
                  .add({write, 0, 0, 0, 100, read, 0, 0, 0, 100, flush, 0, 0, query_info, 0, 0, 1, 18})
                  .add({set_info, 0, 0, 2, 5, close, 0, 0, check})},
    {"directory", script(0)
                      .client(0, smb_2_1)
                      .file(0, d, open_if | directory)
                      .file(0, d_c)
                      .add({query_directory, 0, 1, 3, 0, notify, 0, 1, 1})
                      .add({set_info, 0, 0, 0, b, close, 0, 0, cancel, 0, echo, 0})},
    {"locks", script(0)
                  .client(0, smb_3_0_2)
                  .client(1, smb_3_0_2, 1)
                  .file(0, a)
                  .file(1, a)
                  .add({lock, 0, 1, 0, 3, 0, 10, lock, 1, 0, 0, 1, 5, 10, lock, 1, 0, 0, 3, 5, 10, check})
                  .add({lock, 0, 1, 0, 4, 0, 10, cancel, 1, drop, 1, check})},
    {"leases", script(0)
                   .client(0, smb_3_0_2)
                   .client(1, static_cast<std::uint8_t>(smb_3_0_2 + 6), 1)
                   .add({create, 0, a, everything, open_if | has_caching, 0x9d})
                   .add({create, 1, a, everything, open_if | has_caching, 0xfe, acknowledge, 0, 0})
                   .add({write, 0, 0, 0, 50, pass, 3, acknowledge, 1, 0, check})},
    {"durable", script(0)
                    .client(0, smb_3_0_2)
                    .add({create, 0, a, everything, open_if | has_caching | has_contexts, 0x9d, 2, 4})
                    .add({drop, 0, pass, 1})
                    .client(0, smb_3_0_2)
                    .add({create, 0, a, everything, open | has_caching | has_contexts, 0x9d, 8, 4})
                    .add({drop, 0, pass, 4})},
    {"streams",
     script(0)
         .client(0, smb_3_0)
         .file(0, a_s)
         .file(0, a_t)
         .add({set_info, 0, 0, 0, 64 + 128 + a_s, set_info, 0, 1, 4, 1, close, 0, 0, close, 0, 0})},
    {"links", script(0)
                  .client(0, smb_3_0_2)
                  .add({create, 0, l, everything, open_if | 32, ioctl, 0, 0, 0, b, 0, close, 0, 0})
                  .file(0, l)
                  .file(0, 10)
                  .add({create, 0, l, everything, open | 32, ioctl, 0, 0, 1, 0, 0, ioctl, 0, 0, 2, 0, 0})},
    {"channels", script(0)
                     .client(0, smb_3_0_2)
                     .add({connect, 1, negotiate, 1, smb_3_0_2, 0, bind, 1 | is_signed, 0, 0})
                     .file(0, a)
                     .add({write, 1 | is_signed, 0, 0, 9, drop, 0, read, 1 | is_signed, 0, 0, 9})},
    {"reauthentication", script(16)
                             .client(0, smb_3_0_2)
                             .file(0, a)
                             .add({log_on, 0, 3, 8, read, 0, 0, 0, 9, pass, 5, read, 0, 0, 0, 9})
                             .add({log_on, 0, 0, 8, read, 0, 0, 0, 9, log_on, 0, 1, 8, read, 0, 0, 0, 9})},
    {"removed_user", script(8)
                         .client(0, smb_3_0_2)
                         .file(0, d, open_if | directory)
                         .add({notify, 0, 0, 1, admit, 6, read, 0, 0, 0, 9, log_on, 0, 3, 8, admit, 7})},
    {"signed", script(1)
                   .client(0, static_cast<std::uint8_t>(smb_3_1_1), 0, 16 + 1)
                   .add({tree_connect, is_signed, 0, create, is_signed, a,        everything, open_if,
                         lock,         is_signed, 0, 0,      3,         0,        9,          write,
                         is_signed,    0,         0, 9,      logoff,    is_signed})},
    {"encrypted", script(6)
                      .client(0, smb_3_1_1, 0, 1)
                      .add({tree_connect, sealed, 3, create, sealed, a, everything, open_if})
                      .add({write, sealed, 0, 0, 99, read, sealed, 0, 0, 99, read, plain, 0, 0, 99})},
    {"compound", script(0)
                     .client(0, smb_2_1)
                     .add({create, goes_on, a, everything, open_if, write, goes_on, 0, 0, 9})
                     .add({read, goes_on, 0, 0, 9, query_info, goes_on, 0, 1, 5, close, 0, 0})},
    {"replay", script(0)
                   .client(0, smb_3_0_2)
                   .add({create, 0, a, everything, open_if | has_caching | has_contexts, 0x9d, 2, 4})
                   .add({create, replay, a, everything, open_if | has_caching | has_contexts, 0x9d, 2, 4})},
    {"shares", script(32)
                   .client(0, all)
                   .file(0, a)
                   .share(0, 1)
                   .file(0, a)
                   .add({reload, 0xff, 3})
                   .share(0, 2)
                   .add({create, 0, a, 0, open, write, 0, 0, 0, 9})
                   .share(0, 4)
                   .share(0, 5)
                   .file(0, d, open_if | directory)
                   .file(0, d_c)
                   .add({set_info, 0, 0, 0, b, reload, 0x1f, 0, tree_disconnect, 0, check})},
    {"pipe", script(0).client(0, smb_3_0).share(0, 6).add({create, 0,     pipe, everything, open, write, 0,
                                                           0,      0,     99,   read,       0,    0,     0,
                                                           200,    ioctl, 0,    0,          14,   9,     0})},
    {"copy",
     script(128)
         .client(0, smb_3_0_2)
         .file(0, a)
         .add({write, 0, 0, 0, 250})
         .file(0, b)
         .add({ioctl, 0, 0, 3, 1, 0, 0, 200, ioctl, 0, 1, 6, 0, 50, ioctl, 0, 0, 11, 60, 0, drop, 0})},
    {"past", script(0)
                 .client(0, smb_3_0_2)
                 .file(0, a)
                 .add({write, 0, 0, 0, 99})
                 .add({create, 0, a, everything, open | has_contexts, 128, 193})
                 .add({create, 0, a, everything, open | has_contexts, 128, 194})
                 .add({read, 0, 1, 0, 99, write, 0, 1, 0, 9, set_info, 0, 1, 2, 5, ioctl, 0, 1, 7, 0, 9})
                 .add({ioctl, 0, 1, 30, 0, 0, close, 0, 0, read, 0, 0, 0, 99, close, 0, 0, check})},
    {"removal", script(256)
                    .client(0, smb_3_0_2)
                    .file(0, a, open_if | delete_on_close)
                    .file(0, a_s)
                    .add({close, 0, 1, faults, 7, close, 0, 0})
                    .file(0, b, supersede)
                    .add({set_info, 0, 0, 0, 128 + a, shut, 0})},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::filesystem::path target = std::filesystem::path(argv[1]) / "smb2_server_states";
    std::filesystem::create_directories(target);
    for (const seed& one : seeds) {
        std::ofstream file(target / one.name, std::ios::binary);
        file << one.what.bytes();
        if (not file.good()) {
            std::fprintf(stderr, "cannot write %s\n", one.name);
            return 1;
        }
    }
    return 0;
}
