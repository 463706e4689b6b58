// Errors as values: one closed enum of codes, a message, and where it happened.
//
// Every fallible function of the libraries returns Result<T>. Libraries never print, throw across
// their interface, exit or abort; the programs in tools/ turn an Error into one line and an exit
// code (spec/cli.md, "Exit codes").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace df11 {

// Pinned, so that callers may store them; append only.
enum class ErrorCode : int {
  io_error = 1,          // a system call failed for a reason other than those below
  not_found = 2,         // a file or directory does not exist
  already_exists = 3,    // the output is already there
  no_space = 4,          // file system or quota full
  invalid_argument = 5,  // the caller asked for something that makes no sense
  malformed_json = 6,    // not JSON, duplicate key, too deep, not UTF-8
  malformed_safetensors = 7,
  malformed_index = 8,   // index file, or index and shards disagree
  malformed_config = 9,  // config.json or its dfloat11_config
  malformed_group = 10,  // the six tensors of a DF11 group contradict each other
  malformed_manifest = 11,
  corrupt_stream = 12,  // a group's code stream does not decode to its declared weights
  unsupported = 13,     // well-formed, but not something this tool handles
  limit_exceeded = 14,  // larger than a stated limit
  source_changed = 15,  // the source changed while it was being read
  cancelled = 16,       // the caller asked to stop
  // 17 and 18 are statuses of decoder/capi/df11.h only.
  damaged = 19,  // bytes are missing, or are not those whose hash was recorded
};

// True when the error says something about what was read, not about the machine or the request.
bool is_damage(ErrorCode code);

// True when opening failed because there is no regular file of that name.
bool is_no_file(ErrorCode code);

// Stable lower-case name of `code`.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::io_error;
  std::string message;                        // one line, no trailing full stop
  std::string file;                           // path, empty when no file is concerned
  std::string tensor;                         // tensor or module name, empty when none
  std::optional<uint64_t> offset_bytes = {};  // byte offset in `file`

  // "file: tensor 'name': at byte N: message", leaving out what is empty.
  std::string describe() const;

  // Fill in context that an inner layer did not know. Never overwrites.
  Error&& in_file(std::string_view path) &&;
  Error&& in_tensor(std::string_view name) &&;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), {}, {}, {}});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// The error of a failed system call: maps ENOENT, EEXIST, ENOSPC and EDQUOT, keeps strerror's text.
Error system_error(int errno_value, std::string_view action, std::string_view path);

// DF11_TRY(expr): leave the function with expr's error, if it has one.
#define DF11_TRY(expr) DF11_TRY_(expr, DF11_CONCAT_(df11_result_, __COUNTER__))
#define DF11_TRY_(expr, result)                                          \
  do {                                                                   \
    if (auto result = (expr); !result) {                                 \
      return ::tl::unexpected<::df11::Error>(std::move(result).error()); \
    }                                                                    \
  } while (false)

// DF11_ASSIGN(decl, expr): the same, and bind the value to decl otherwise.
#define DF11_ASSIGN(decl, expr) DF11_ASSIGN_(decl, expr, DF11_CONCAT_(df11_result_, __COUNTER__))
#define DF11_ASSIGN_(decl, expr, result)                                          \
  auto result = (expr);                                                           \
  if (!result) return ::tl::unexpected<::df11::Error>(std::move(result).error()); \
  decl = std::move(*result)
#define DF11_CONCAT_(a, b) DF11_CONCAT2_(a, b)
#define DF11_CONCAT2_(a, b) a##b

}  // namespace df11
