#include "verify/sha256_list.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace df11 {

namespace {

std::optional<std::string> unescaped(std::string_view path) {
  std::string text;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '\\') {
      text += path[i];
      continue;
    }
    if (++i == path.size()) return std::nullopt;
    if (path[i] != '\\' && path[i] != 'n' && path[i] != 'r') return std::nullopt;
    text += path[i] == 'n' ? '\n' : path[i] == 'r' ? '\r' : '\\';
  }
  return text;
}

std::optional<std::pair<std::string, Sha256>> parse_line(std::string_view line) {
  constexpr size_t kHexDigits = 64;
  const bool is_escaped = line.starts_with('\\');
  if (is_escaped) line.remove_prefix(1);
  if (line.size() < kHexDigits + 3 || line[kHexDigits] != ' ' ||
      (line[kHexDigits + 1] != ' ' && line[kHexDigits + 1] != '*')) {
    return std::nullopt;
  }
  std::string hex(line.substr(0, kHexDigits));
  for (char& c : hex) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const Result<Sha256> hash = parse_sha256(hex);
  if (!hash) return std::nullopt;
  std::string path(line.substr(kHexDigits + 2));
  if (is_escaped) {
    std::optional<std::string> plain = unescaped(path);
    if (!plain) return std::nullopt;
    path = std::move(*plain);
  }
  if (path.starts_with("./")) path.erase(0, 2);
  return std::pair(std::move(path), *hash);
}

}  // namespace

Result<Sha256List> parse_sha256_list(std::string_view text) {
  Sha256List list;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty()) continue;
    const auto entry = parse_line(line);
    if (!entry) {
      return fail(ErrorCode::invalid_argument, "line " + std::to_string(number) +
                                                   " is not \"SHA256  PATH\", as sha256sum prints");
    }
    const auto [found, is_new] = list.insert(*entry);
    if (!is_new && found->second != entry->second) {
      return fail(ErrorCode::invalid_argument, "line " + std::to_string(number) +
                                                   " gives a path of an earlier line another hash");
    }
  }
  if (list.empty()) return fail(ErrorCode::invalid_argument, "the list of hashes is empty");
  return list;
}

}  // namespace df11
