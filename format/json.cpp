#include "format/json.h"

#include <set>

namespace df11 {

namespace {

// Builds a DOM value; refuses duplicate keys and deep nesting.
class DomBuilder final : public JsonSax {
 public:
  Json root;
  std::string problem;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!levels_.back().keys.insert(name).second) return refuse("duplicate key \"" + name + "\"");
    key_ = name;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return refuse("not valid JSON at byte " + std::to_string(position));
  }

 private:
  struct Level {
    Json* value;
    // Ordered: keys can be made to collide in any hash that is known.
    std::set<std::string> keys;
  };

  bool refuse(std::string why) {
    problem = std::move(why);
    return false;
  }

  Json* place(Json&& value) {
    if (levels_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json_append(parent, key_, std::move(value));
    return &parent.get_ref<Json::object_t&>().back().second;
  }

  bool put(Json&& value) {
    if (++n_values_ > kMaxJsonValues) return refuse("more than 4194304 values");
    place(std::move(value));
    return true;
  }

  bool open(Json&& value) {
    if (levels_.size() >= kMaxJsonDepth) return refuse("nested too deeply");
    if (++n_values_ > kMaxJsonValues) return refuse("more than 4194304 values");
    levels_.push_back({place(std::move(value)), {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::vector<Level> levels_;
  uint64_t n_values_ = 0;
  std::string key_;
};

}  // namespace

bool parse_json_sax(std::string_view text, JsonSax& sax) {
  // nlohmann takes a NUL for the end of the text, and skips a byte order mark; JSON has neither.
  if (text.find('\0') != text.npos || text.starts_with("\xef\xbb\xbf")) return false;
  try {
    return Json::sax_parse(text.begin(), text.end(), &sax);
  } catch (const Json::exception&) {
    return false;
  }
}

Result<Json> parse_json(std::string_view text) {
  DomBuilder builder;
  if (!parse_json_sax(text, builder)) {
    return fail(ErrorCode::malformed_json,
                builder.problem.empty() ? "not valid JSON" : builder.problem);
  }
  return std::move(builder.root);
}

std::string json_quote(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void json_append(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().Container::emplace_back(std::move(key), std::move(value));
}

const Json* json_find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<uint64_t> json_uint(const Json& object, std::string_view key) {
  const Json* value = json_find(object, key);
  if (value == nullptr || !value->is_number_unsigned()) {
    return fail(ErrorCode::malformed_config,
                "\"" + std::string(key) + "\" is missing or not a non-negative integer");
  }
  return value->get<uint64_t>();
}

Result<std::string> json_string(const Json& object, std::string_view key) {
  const Json* value = json_find(object, key);
  if (value == nullptr || !value->is_string()) {
    return fail(ErrorCode::malformed_config,
                "\"" + std::string(key) + "\" is missing or not a string");
  }
  return value->get<std::string>();
}

}  // namespace df11
