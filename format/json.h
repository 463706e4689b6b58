// JSON as this project accepts it: nlohmann's parser with limits and without duplicate keys.
//
// The one place that includes nlohmann/json. Objects keep the order of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "format/error.h"

namespace df11 {

using Json = nlohmann::ordered_json;
using JsonSax = nlohmann::json_sax<Json>;

// Nesting deeper than this is refused: no file of this field comes near it.
inline constexpr int kMaxJsonDepth = 64;
// So are more values than this: they take up to 150 bytes of memory for 2 bytes of text.
inline constexpr uint64_t kMaxJsonValues = uint64_t{1} << 22;

// Parses one JSON text. Refuses (malformed_json) anything that is not strict JSON, invalid UTF-8, a
// duplicate key at any level, nesting beyond kMaxJsonDepth, and more than kMaxJsonValues values.
Result<Json> parse_json(std::string_view text);

// Runs `sax` over `text` with nlohmann's strict parser; returns false when the parser or a callback
// refused. Throws nothing that nlohmann throws.
bool parse_json_sax(std::string_view text, JsonSax& sax);

// `text` as a JSON string literal with quotes, escaped as the reference safetensors writer does.
std::string json_quote(std::string_view text);

// Adds a member that is known to be new, in constant time (operator[] would search for it).
void json_append(Json& object, std::string key, Json value);

// Member access that never throws: null when `object` is no object or has no such key.
const Json* json_find(const Json& object, std::string_view key);

// Typed member access; malformed_config naming the key otherwise.
Result<uint64_t> json_uint(const Json& object, std::string_view key);
Result<std::string> json_string(const Json& object, std::string_view key);

}  // namespace df11
