#include "format/error.h"

#include <cerrno>
#include <cstring>

namespace df11 {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::io_error: return "io_error";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::already_exists: return "already_exists";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::malformed_json: return "malformed_json";
    case ErrorCode::malformed_safetensors: return "malformed_safetensors";
    case ErrorCode::malformed_index: return "malformed_index";
    case ErrorCode::malformed_config: return "malformed_config";
    case ErrorCode::malformed_group: return "malformed_group";
    case ErrorCode::malformed_manifest: return "malformed_manifest";
    case ErrorCode::corrupt_stream: return "corrupt_stream";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::limit_exceeded: return "limit_exceeded";
    case ErrorCode::source_changed: return "source_changed";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::damaged: return "damaged";
  }
  return "unknown";
}

bool is_no_file(ErrorCode code) {
  return code == ErrorCode::not_found || code == ErrorCode::unsupported;
}

bool is_damage(ErrorCode code) {
  switch (code) {
    case ErrorCode::malformed_json:
    case ErrorCode::malformed_safetensors:
    case ErrorCode::malformed_index:
    case ErrorCode::malformed_config:
    case ErrorCode::malformed_group:
    case ErrorCode::malformed_manifest:
    case ErrorCode::corrupt_stream:
    case ErrorCode::limit_exceeded:
    case ErrorCode::damaged: return true;
    default: return false;
  }
}

std::string Error::describe() const {
  std::string text;
  if (!file.empty()) text += file + ": ";
  if (!tensor.empty()) text += "tensor '" + tensor + "': ";
  if (offset_bytes) text += "at byte " + std::to_string(*offset_bytes) + ": ";
  return text + message;
}

Error&& Error::in_file(std::string_view path) && {
  if (file.empty()) file = path;
  return std::move(*this);
}

Error&& Error::in_tensor(std::string_view name) && {
  if (tensor.empty()) tensor = name;
  return std::move(*this);
}

Error system_error(int errno_value, std::string_view action, std::string_view path) {
  ErrorCode code = ErrorCode::io_error;
  if (errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ENAMETOOLONG)
    code = ErrorCode::not_found;
  if (errno_value == EEXIST || errno_value == ENOTEMPTY) code = ErrorCode::already_exists;
  if (errno_value == ENOSPC || errno_value == EDQUOT) code = ErrorCode::no_space;
  return Error{
      code, std::string(action) + ": " + std::strerror(errno_value), std::string(path), {}, {}};
}

}  // namespace df11
