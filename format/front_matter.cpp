#include "format/front_matter.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <yaml-cpp/yaml.h>

namespace df11 {

namespace {

constexpr std::string_view kFence = "---";
// Cards with tables of benchmark results have some hundred kB.
constexpr size_t kMaxBlockBytes = size_t{4} << 20;

auto bad_block(std::string message) {
  return fail(ErrorCode::malformed_config, "front matter: " + std::move(message));
}

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The text between the two fences; nothing when the card does not begin with a fence.
Result<std::string> block_of(std::string_view card) {
  if (card.starts_with("\xef\xbb\xbf")) card.remove_prefix(3);
  card.remove_prefix(std::min(card.find_first_not_of(" \t\r\n"), card.size()));
  if (next_line(card) != kFence) return std::string();
  std::string block;
  while (!card.empty()) {
    const std::string_view line = next_line(card);
    if (line == kFence) return block;
    block += line;
    block += '\n';
    if (block.size() > kMaxBlockBytes) return bad_block("longer than 4 MiB");
  }
  return bad_block("no closing \"---\"");
}

// Nothing for what is neither a scalar nor a list of scalars.
CardValue card_value(const YAML::Node& node) {
  if (node.IsScalar()) return CardValue::scalar(node.Scalar());
  CardValue value = CardValue::list({});
  if (!node.IsSequence()) return value;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) return CardValue::list({});
    value.items.push_back(item.Scalar());
  }
  return value;
}

// Whether every YAML reader takes the bare text for this string.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 9> kOtherTypes = {"y",   "n",    "yes",   "no",  "on",
                                                           "off", "true", "false", "null"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         text.back() != ' ' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) {
                       return c < 0x80 && (std::isalnum(c) != 0 ||
                                           std::string_view(" -_./+").find(static_cast<char>(c)) !=
                                               std::string_view::npos);
                     }) &&
         std::find(kOtherTypes.begin(), kOtherTypes.end(), lower) == kOtherTypes.end();
}

void emit(YAML::Emitter& out, const std::string& text) {
  if (!is_plain(text)) out << YAML::DoubleQuoted;
  out << text;
}

}  // namespace

const CardValue* FrontMatter::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

void FrontMatter::add(std::string key, CardValue value) {
  entries.emplace_back(std::move(key), std::move(value));
}

Result<FrontMatter> FrontMatter::parse(std::string_view card) {
  DF11_ASSIGN(const std::string block, block_of(card));
  FrontMatter matter;
  if (block.empty()) return matter;
  try {
    const YAML::Node root = YAML::Load(block);
    if (root.IsNull()) return matter;
    if (!root.IsMap()) return bad_block("no map of keys to values");
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) continue;
      CardValue value = card_value(entry.second);
      if (!value.items.empty()) matter.add(entry.first.Scalar(), std::move(value));
    }
  } catch (const YAML::Exception& error) {
    return bad_block("line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
  return matter;
}

std::string FrontMatter::to_text() const {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const auto& [key, value] : entries) {
    out << YAML::Key << key << YAML::Value;
    if (value.is_list) out << YAML::BeginSeq;
    for (const std::string& item : value.items) emit(out, item);
    if (value.is_list) out << YAML::EndSeq;
  }
  out << YAML::EndMap;
  const std::string fence = std::string(kFence) + "\n";
  return fence + out.c_str() + "\n" + fence;
}

}  // namespace df11
