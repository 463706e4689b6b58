// Input: the text of an index. What is accepted names files within the directory only.
#include "format/json.h"
#include "format/shard_set.h"
#include "fuzz_input.h"

using namespace df11;
using df11::test::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const Result<ShardIndex> index = ShardIndex::parse(test::FuzzInput(data, n_bytes).text());
  if (!index) return 0;
  for (const auto& [tensor, file] : index->weight_map) {
    require(file.find('/') == file.npos && file.find('\\') == file.npos &&
                file.find('\0') == file.npos && file != "." && file != ".." && !file.empty(),
            "the file is in the directory");
    require(file.ends_with(kSafetensorsSuffix), "the file is a shard");
  }
  const Json written = {{"weight_map", index->weight_map}};
  const Result<ShardIndex> again = ShardIndex::parse(written.dump());
  require(again && again->weight_map == index->weight_map, "what is written can be read");
  require(index->check_agrees(ShardSet()).has_value() == index->weight_map.empty(),
          "only an empty index agrees with no shards");
  return 0;
}
