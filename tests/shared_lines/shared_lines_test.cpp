#include <cxxabi.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "sluice/smb/server/net/server_tables_testing.hpp"
#include "tests/shared_lines/two_loops.hpp"

// The cache lines that move between two loops of a server while their clients carry out the same
// operation. docs/benchmarks/smb_scaling.md has the table. With SLUICE_SHARED_LINES=FILE, the
// program adds its findings to that file, for bench/smb_scaling_model.py.

namespace sluice::shared_lines {
namespace {

using smb_simulation::steady_client;
using clients = two_loops::clients;

// The name of a function, without its parameters; empty if the linker has not exported it.
[[nodiscard]] std::string function_at(std::uintptr_t code) {
    Dl_info found{};
    if (::dladdr(reinterpret_cast<void*>(code), &found) == 0 or found.dli_sname == nullptr) return {};
    int status = 0;
    char* const name = abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status);
    std::string text = status == 0 ? name : found.dli_sname;
    std::free(name);
    return text;
}

// The place of an instruction in the program, for llvm-symbolizer.
[[nodiscard]] std::uintptr_t offset_of(std::uintptr_t code) {
    Dl_info found{};
    if (::dladdr(reinterpret_cast<void*>(code), &found) == 0) return 0;
    return code - 1 - reinterpret_cast<std::uintptr_t>(found.dli_fbase);
}

// Objects of which the server does not show the address, by a function that accesses them.
struct user_of_object {
    std::string_view function;
    const char* object;
};
constexpr std::array users_of_objects{
    user_of_object{"sluice::error::with_path", "texts of errors"},
    user_of_object{"name_index::", "name index"},
    user_of_object{"attribute_memory::", "attribute memory"},
    user_of_object{"host_tree::open_known_file", "known files"},
    user_of_object{"file_state::", "file table"},             // it recycles their memory
    user_of_object{"sync::priority_source::", "file table"},  // in the range locks of such a state
    user_of_object{"vfs::file_key", "file table"},
    user_of_object{"recycled_memory::", "file table"},
};
// Their lines are chosen by a hash of the file. Whether the files of two clients share one depends
// on the file system.
constexpr std::array chosen_by_hash{"attribute memory", "file table", "known files"};
[[nodiscard]] bool is_chosen_by_hash(const std::string& object) {
    return std::ranges::find(chosen_by_hash, object) != chosen_by_hash.end();
}

// Where a std::shared_ptr counts its references: its second word is the address.
template <class Object>
[[nodiscard]] std::uintptr_t counts_of(const std::shared_ptr<Object>& which) {
    std::array<std::uintptr_t, 2> words{};
    static_assert(sizeof words == sizeof which);
    std::memcpy(words.data(), &which, sizeof which);
    return words[1];
}

class shared_lines : public testing::Test {
protected:
    struct named_operation {
        const char* name;
        two_loops::operation what;
    };

    /// Returns, for each operation, the objects with lines that move in at least every fourth
    /// execution. A line in which each loop has words of its own is not counted: it depends on the
    /// allocator. For clients in directories of their own, objects that a hash chooses are omitted.
    [[nodiscard]] std::string objects_with(clients how, std::span<const named_operation> operations) {
        constexpr unsigned attempts_max = 8;
        const bool are_apart = how == clients::in_own_directories;
        std::string text;
        for (unsigned attempt = 0; attempt != attempts_max; ++attempt) {
            text.clear();
            rows_.clear();
            parts_.clear();
            two_loops loops(how, attempt);
            bool share_files_by_chance = false;
            loops.run([&] {
                add_parts(loops.host());
                for (const named_operation& each : operations) {
                    std::set<std::string> objects = objects_in(each, loops);
                    // A new file may get the number of one that the other client has just deleted.
                    if (are_apart and std::string_view(each.name) == "open")
                        share_files_by_chance = objects.contains("file table");
                    if (are_apart) std::erase_if(objects, is_chosen_by_hash);
                    text += std::string(each.name) + ":";
                    for (const std::string& object : objects)
                        text += (text.ends_with(':') ? " " : ", ") + object;
                    text += '\n';
                }
            });
            if (not share_files_by_chance) break;
        }
        if (const char* const path = std::getenv("SLUICE_SHARED_LINES"); path != nullptr)
            std::ofstream(path, std::ios::app) << rows_;
        return text;
    }

private:
    [[nodiscard]] std::set<std::string> objects_in(const named_operation& which, two_loops& loops) {
        const two_loops::recording found = loops.record(which.what);
        std::set<std::string> objects;
        std::map<std::string, pool> pools;
        for (const moving_line& line : found.lines) {
            const std::string object = object_of(line);
            const bool is_frequent = 4 * line.moves >= found.executions;
            if (not is_frequent) {
                pools[object].add(line);
                continue;
            }
            add_row(which.name, object, found, line);
            if (line.shared_word != 0) objects.insert(object);
        }
        for (const auto& [object, of_object] : pools)
            add_row(which.name, object, found, of_object);
        return objects;
    }

    // The lines of one object that move in less than every fourth execution, such as the places of
    // a ring.
    struct pool {
        std::size_t lines = 0;
        std::uint64_t moves = 0;
        std::uint64_t changes = 0;
        std::size_t visits = 0;

        void add(const moving_line& line) {
            ++lines;
            moves += line.moves;
            changes += line.changes;
            for (const auto& of_one : line.visits)
                visits += of_one.size();
        }
    };
    struct part {
        std::string name;
        std::uintptr_t begin = 0;
        std::size_t bytes = 0;
    };

    void add_bytes(std::string name, std::uintptr_t begin, std::size_t bytes) {
        parts_.push_back({std::move(name), begin, bytes});
    }
    template <class Part>
    void add(std::string name, const Part& which) {
        add_bytes(std::move(name), reinterpret_cast<std::uintptr_t>(&which), sizeof which);
    }
    template <class Part>
    void add(const std::string& name, const std::shared_ptr<Part>& which) {
        add(name, *which);
        add_bytes(name, counts_of(which), 2 * sizeof(void*));
    }
    // The objects of the clients, which have an open each, or one together.
    void add_objects_of_clients(const smb::server::server_context& host) {
        for (const std::shared_ptr<smb::server::open>& one : host.opens.all()) {
            const std::shared_ptr<smb::server::session> session = one->session();
            add("open", one);
            add("session", session);
            for (const auto& tree : session->trees())
                add("tree", tree);
            for (const auto& channel : session->channels())
                add("channel", channel);
            // The entry in the table of the quotas begins with the name.
            constexpr std::size_t entry_bytes = 160;
            const std::string& name = session->admitted.client.name();
            add_bytes("quotas", reinterpret_cast<std::uintptr_t>(&name), entry_bytes);
        }
    }
    void add_parts(smb::server::server_context& host) {
        const auto share = host.find_share("files");
        add("naming state", host.names_of(share->volume(), false));
        smb::server::for_each_table(host, [this](const char* name, const auto& table) { add(name, table); });
        add("server", host);
        add("share", share);
        add("domain", share->volume().domain());
        for (const auto& each : host.loops())
            add("loop", *each);
        add_objects_of_clients(host);
    }
    [[nodiscard]] std::string object_of(const moving_line& line) const {
        for (const part& each : parts_)
            if (line.shared_word + sizeof(line.shared_word) > each.begin and
                line.shared_word < each.begin + each.bytes)
                return each.name;
        std::string functions;
        for (const std::uintptr_t code : line.codes) {
            const std::string function = function_at(code);
            for (const user_of_object& each : users_of_objects)
                if (function.contains(each.function)) return each.object;
            functions += ' ' + function;
        }
        return "object of" + functions;
    }

    // A number of all executions, for one of them.
    [[nodiscard]] static double for_each(const two_loops::recording& of, std::uint64_t number) {
        return static_cast<double>(number) / static_cast<double>(of.executions);
    }
    [[nodiscard]] static std::string begin_of_row(const char* operation, const std::string& object) {
        return R"({"bench": "smb_shared_lines", "operation": ")" + std::string(operation) +
               R"(", "object": ")" + object + '"';
    }
    void add_row(const char* operation, const std::string& object, const two_loops::recording& of,
                 const moving_line& line) {
        std::ostringstream row;
        row.precision(4);
        row << begin_of_row(operation, object) << R"(, "lines": 1, "moves": )" << for_each(of, line.moves)
            << R"(, "changes": )" << for_each(of, line.changes) << R"(, "shares_words": )"
            << (line.shared_word != 0 ? "true" : "false") << R"(, "accesses": )" << of.accesses
            << R"(, "code": [)";
        const char* separator = "";
        for (const std::uintptr_t code : line.codes) {
            row << separator << offset_of(code);
            separator = ", ";
        }
        row << R"(], "visits": [)";
        add_visits(row, line, static_cast<double>(of.executions));
        row << "]}\n";
        rows_ += row.str();
    }
    void add_row(const char* operation, const std::string& object, const two_loops::recording& of,
                 const pool& rare) {
        std::ostringstream row;
        row.precision(4);
        row << begin_of_row(operation, object) << R"(, "lines": )" << rare.lines << R"(, "moves": )"
            << for_each(of, rare.moves) << R"(, "changes": )" << for_each(of, rare.changes)
            << R"(, "accesses": )" << of.accesses << R"(, "visits_of_all": )" << for_each(of, rare.visits)
            << "}\n";
        rows_ += row.str();
    }
    // For the n-th visit of an execution, and each kind: how often it is of that kind, and its mean
    // place.
    static void add_visits(std::ostream& row, const moving_line& line, double executions) {
        constexpr std::array names{"read", "write", "section"};
        struct sum {
            double count = 0;
            double from = 0;
            double until = 0;
        };
        std::vector<std::array<sum, names.size()>> sums;
        for (const auto& of_one : line.visits) {
            sums.resize(std::max(sums.size(), of_one.size()));
            for (std::size_t i = 0; i != of_one.size(); ++i) {
                sum& of_kind = sums[i].at(static_cast<std::size_t>(of_one[i].how));
                of_kind.count += 1;
                of_kind.from += of_one[i].from;
                of_kind.until += of_one[i].until;
            }
        }
        const char* separator = "";
        for (const auto& kinds : sums)
            for (std::size_t kind = 0; kind != names.size(); ++kind) {
                const sum& each = kinds.at(kind);
                if (each.count == 0) continue;
                row << separator << R"([")" << names.at(kind) << R"(", )" << each.count / executions << ", "
                    << each.from / each.count << ", " << each.until / each.count << ']';
                separator = ", ";
            }
    }

    std::vector<part> parts_;
    std::string rows_;
};

TEST_F(shared_lines, with_two_clients_are_those_in_the_table) {
    constexpr std::array operations{
        named_operation{"echo", &steady_client::echo},
        named_operation{"read", &steady_client::read},
        named_operation{"write", &steady_client::write},
        named_operation{"open", &steady_client::open_then_ask_then_close},
        named_operation{"create", &steady_client::create_and_delete},
        named_operation{"list", &steady_client::list},
    };
    EXPECT_EQ(objects_with(clients::in_own_directories, operations),
              "echo:\n"
              "read:\n"
              "write:\n"
              "open: domain, naming state, quotas, share\n"
              "create: domain, name index, naming state, quotas, share, texts of errors\n"
              "list: domain, naming state, quotas, share\n");
}

TEST_F(shared_lines, with_two_clients_include_those_that_the_same_file_has) {
    constexpr std::array operations{
        named_operation{"read of one file", &steady_client::read},
        named_operation{"open of one file", &steady_client::open_then_ask_then_close},
    };
    EXPECT_EQ(objects_with(clients::in_one_directory, operations),
              "read of one file:\n"
              "open of one file: attribute memory, domain, file table, naming state, quotas, share\n");
}

TEST_F(shared_lines, with_two_clients_include_those_that_the_same_new_name_has) {
    constexpr std::array operations{
        named_operation{"create of one file", &steady_client::create_and_delete},
    };
    // Some file systems give each new file another number, and so another place in the tables.
    EXPECT_THAT(objects_with(clients::in_one_directory, operations),
                testing::AllOf(testing::HasSubstr("known files"), testing::HasSubstr("name index")));
}

TEST_F(shared_lines, with_two_channels_include_those_that_the_session_has) {
    constexpr std::array operations{
        named_operation{"read on two channels", &steady_client::read},
    };
    EXPECT_EQ(objects_with(clients::are_channels, operations),
              "read on two channels: open, open table, session, tree\n");
}

}  // namespace
}  // namespace sluice::shared_lines
