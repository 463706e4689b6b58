// Shapes of Linear and Embedding weights, from what config.json says about a model. A DF11 group
// holds no shapes, only element counts: upstream's runtime takes them from the model's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/json.h"
#include "format/safetensors.h"

namespace df11 {

// [rows, columns] of weight `name` with `n_elements` elements, for the projections, embeddings and
// heads of the Llama family's names; nothing unless config.json gives both extents and they match
// the element count.
std::optional<Shape> linear_shape(const Json& config, std::string_view name, uint64_t n_elements);

}  // namespace df11
