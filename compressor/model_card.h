// README.md of the artifact: what a model hub files it under, and what someone who finds it needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "format/error.h"
#include "format/front_matter.h"

namespace df11 {

// What is known of the source before anything is compressed.
struct CardSource {
  std::string base_model;       // "ORG/NAME"; empty when unknown
  std::string base_model_from;  // where that is from, for people: "--base-model", "the hub cache"
  FrontMatter inherited;        // licence, language and pipeline_tag of the source's card
  std::string component;        // "transformer", of a pipeline's component; empty otherwise
  std::vector<std::string> notes;  // for the summary: what could not be used, and why
};

// Looks at the source's card and config, at the directory's name in a hub cache, and, for a
// component of a diffusers pipeline, at the pipeline's card (spec/manifest.md section 4). A card
// whose YAML is malformed, or that is too large, is a note. `base_model` may be empty. Errors:
// invalid_argument when it is no repository name; I/O errors.
Result<CardSource> find_card_source(const Checkpoint& checkpoint, const std::string& base_model);

// Sizes in bytes, of tensors or of the shards that hold them.
struct CardFigures {
  uint64_t source_weight_bytes = 0;
  uint64_t stored_weight_bytes = 0;  // all shards of the artifact
  uint64_t grouped_weight_bytes = 0;
  uint64_t stored_group_bytes = 0;
  uint64_t n_parameters = 0;
};

// The whole card. `source_card` is the file that holds the source's own; empty when it has none.
std::string model_card(const CardSource& source, const Checkpoint& checkpoint,
                       const CardFigures& figures, const std::string& source_card);

}  // namespace df11
