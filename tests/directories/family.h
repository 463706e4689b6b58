// Checkpoints of published model families, from compressor/families/*.json: their tensors with
// shapes scaled down, and what becomes of every one.
//
// In the files {0..2} stands for each of the numbers, in any name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "directories/builders.h"
#include "format/df11_config.h"

namespace df11::test {

using Names = std::vector<std::string>;
using NamesByKey = std::map<std::string, Names>;

Json read_json(const fs::path& path);
PatternDict pattern_dict(const Json& object);  // as find_pattern_dict finds it

// The names of all of them.
Names family_names();

class Family {
 public:
  explicit Family(const std::string& name);

  // One model.safetensors and config.json. All weights are zero, or else the BF16 ones are normal
  // and matrices have eight times the extents.
  void write_checkpoint(const fs::path& directory, bool normal_weights = false) const;

  // Module of each group -> its members, in order.
  NamesByKey groups(const std::string& granularity) const;
  // Reason of each verbatim tensor.
  std::map<std::string, std::string> verbatim(const std::string& granularity) const;
  // For block granularity: upstream's where it has published one.
  PatternDict patterns() const;

 private:
  Json root_;
};

}  // namespace df11::test
