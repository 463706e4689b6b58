// The YAML block at the head of a model card (README.md), by which a model hub files a repository.
//
// The one place that includes yaml-cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/error.h"

namespace df11 {

inline constexpr std::string_view kCardName = "README.md";

// A value of the block that is a scalar, or a list of scalars.
struct CardValue {
  std::vector<std::string> items;
  bool is_list = false;

  static CardValue scalar(std::string text) { return {{std::move(text)}, false}; }
  static CardValue list(std::vector<std::string> items) { return {std::move(items), true}; }
  friend bool operator==(const CardValue&, const CardValue&) = default;
};

// Keys and values in the order of the text.
struct FrontMatter {
  std::vector<std::pair<std::string, CardValue>> entries;

  // Null when there is no such key.
  const CardValue* find(std::string_view key) const;
  void add(std::string key, CardValue value);

  // Reads the block of a model card. Keys whose value is anything else (nested maps, null) are left
  // out; a card without a block gives no entries.
  // Errors: malformed_config when the block does not end, is no YAML map, or is over 4 MiB.
  static Result<FrontMatter> parse(std::string_view card);
  // The block with its two "---" lines. Words that some YAML version takes for another type ("no",
  // "1.0") are quoted.
  std::string to_text() const;
};

}  // namespace df11
