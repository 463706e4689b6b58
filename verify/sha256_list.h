// Lists of hashes as sha256sum prints them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "format/error.h"
#include "format/hash.h"

namespace df11 {

// Path -> SHA-256. A leading "./" of a path is dropped.
using Sha256List = std::map<std::string, Sha256>;

// Reads lines "HEX  PATH" and "HEX *PATH", in the escaped form "\HEX  PATH" with \\, \n and \r too.
// Errors: invalid_argument with the line's number; also for an empty list, and for a path that is
// listed twice with different hashes.
Result<Sha256List> parse_sha256_list(std::string_view text);

}  // namespace df11
