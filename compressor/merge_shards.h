// Output files of a chosen size, as model hubs and other tools write them, instead of one file a
// block of the model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compressor/shard_job.h"

namespace df11 {

// Distributes the groups and verbatim tensors of `counted` over files of at most `max_bytes` each,
// in the order in which the source has them. One that is larger alone has a file of its own. The
// files are STEM-00001-of-0000N.safetensors, or STEM.safetensors if there is one only.
// Errors: limit_exceeded when a header would be too long.
Result<std::vector<ShardJob>> merge_shards(std::vector<ShardJob> counted, uint64_t max_bytes,
                                           std::string_view stem);

}  // namespace df11
