#pragma once

#include <memory>
#include <string>

#include "sluice/vfs/node.hpp"

namespace sluice::smb::server {

/// How far QUERY_DIRECTORY has come on an open directory ([MS-FSA] 2.1.5.6.3).
struct directory_scan {
    std::unique_ptr<vfs::directory_listing> listing;
    std::string pattern;         // of the first query, or the one that restarted it
    unsigned dots_given = 0;     // of `.` and `..`, which come first
    bool has_given_any = false;  // the first query without a match is told apart from the end
    const vfs::listed_name* pushed_back = nullptr;  // taken from the listing and did not fit the reply
};

}  // namespace sluice::smb::server
