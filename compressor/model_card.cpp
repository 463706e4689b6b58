#include "compressor/model_card.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "format/directory.h"
#include "format/hub_record.h"
#include "format/number_text.h"
#include "format/version.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxCardBytes = uint64_t{16} << 20;
constexpr std::string_view kPipelineIndexName = "model_index.json";
// Stands for the name that the artifact's repository will have, which is not known here.
constexpr std::string_view kThisRepository = "ORG/THIS-REPOSITORY";

double as_double(uint64_t n) {
  return static_cast<double>(n);
}

bool has_file(const Checkpoint& checkpoint, const std::string& path) {
  const auto& files = checkpoint.other_files();
  return std::any_of(files.begin(), files.end(),
                     [&](const DirectoryEntry& entry) { return entry.relative_path == path; });
}

// The first entry of "architectures", or "_class_name" of a diffusers component; empty when neither
// is there.
std::string class_name(const Json& config) {
  if (const Result<std::string> name = json_string(config, "_class_name")) return *name;
  const Json* classes = json_find(config, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty()) return "";
  return classes->front().is_string() ? classes->front().get<std::string>() : "";
}

// Whether upstream's runtime can build the model from config.json alone; it has only causal
// language models in mind.
bool is_built_from_config(const Json& config) {
  const std::string name = class_name(config);
  return name.empty() || name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel") ||
         name.ends_with("ForConditionalGeneration");
}

// The directory's name when its parent is a diffusers pipeline; empty otherwise.
std::string component_of(const fs::path& real_directory) {
  std::error_code error;
  if (!fs::exists(real_directory.parent_path() / kPipelineIndexName, error)) return "";
  const std::string name = real_directory.filename().string();
  const bool identifier = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_');
  });
  return identifier ? name : "";
}

// A card with nothing to take is a note; one that cannot be read is an error.
Result<FrontMatter> read_card(const fs::path& path, std::vector<std::string>& notes) {
  const Result<std::string> text = read_text_file(path, kMaxCardBytes);
  Result<FrontMatter> matter = text ? FrontMatter::parse(*text) : fail(text.error());
  if (matter || !is_damage(matter.error().code)) return matter;
  notes.push_back(path.string() + ": nothing is taken from it: " + matter.error().message);
  return FrontMatter();
}

// A licence's file belongs to the repository it is named in: the name is kept if the file is copied
// along, and becomes an address otherwise.
void inherit_license_link(const CardValue& link, bool same_directory, const Checkpoint& checkpoint,
                          CardSource& source) {
  const std::string& target = link.items.front();
  if (target.starts_with("https://") || (same_directory && has_file(checkpoint, target))) {
    source.inherited.add("license_link", link);
  } else if (!source.base_model.empty() && is_safe_relative_path(target)) {
    source.inherited.add(
        "license_link",
        CardValue::scalar("https://huggingface.co/" + source.base_model + "/blob/main/" + target));
  }
}

void inherit(const FrontMatter& card, bool same_directory, const Checkpoint& checkpoint,
             CardSource& source) {
  const bool licensed = source.inherited.find("license") != nullptr;  // its parts stay together
  for (const std::string key :
       {"license", "license_name", "license_link", "language", "pipeline_tag"}) {
    const CardValue* value = card.find(key);
    if (value == nullptr || source.inherited.find(key) != nullptr) continue;
    if (licensed && key.starts_with("license")) continue;
    if (key == "license_link")
      inherit_license_link(*value, same_directory, checkpoint, source);
    else
      source.inherited.add(key, *value);
  }
}

void find_base_model(const Checkpoint& checkpoint, const FrontMatter& card, CardSource& source) {
  source.base_model = hub_repository(checkpoint.directory());
  source.base_model_from = "the hub cache's directory name";
  if (!source.base_model.empty()) return;
  source.base_model_from.clear();
  // Fine-tuned models often carry their parent's name there, which their card then names too.
  const Result<std::string> name = json_string(checkpoint.config(), "_name_or_path");
  if (!name || name->find('/') == name->npos || !is_repository_name(*name)) return;
  const CardValue* parents = card.find("base_model");
  if (parents != nullptr &&
      std::find(parents->items.begin(), parents->items.end(), *name) != parents->items.end()) {
    source.notes.push_back("config.json's _name_or_path, " + *name +
                           ", is what the source itself was made from: not taken as base_model");
    return;
  }
  source.base_model = *name;
  source.base_model_from = "config.json's _name_or_path";
}

std::string load_text(const CardSource& source, const Checkpoint& checkpoint) {
  const std::string base = source.base_model.empty() ? "ORG/NAME" : source.base_model;
  const std::string repository(kThisRepository);
  std::string text = "With the [`dfloat11`](https://pypi.org/project/dfloat11/) package";
  if (source.component.empty() && is_built_from_config(checkpoint.config())) {
    return text + ":\n\n```python\nfrom dfloat11 import DFloat11Model\n" +
           "model = DFloat11Model.from_pretrained(\"" + repository +
           "\", device=\"cuda:0\")\n```\n";
  }
  text +=
      ", which puts these weights into a model of the original's class:\n\n```python\n"
      "import torch\nfrom dfloat11 import DFloat11Model\n";
  std::string model = "model";
  if (!source.component.empty()) {
    model = "pipeline." + source.component;
    text += "from diffusers import DiffusionPipeline\n\npipeline = DiffusionPipeline";
  } else {
    text += "from transformers import AutoModel\n\nmodel = AutoModel";
  }
  return text + ".from_pretrained(\"" + base + "\", torch_dtype=torch.bfloat16)\n" +
         "DFloat11Model.from_pretrained(\"" + repository +
         "\", device=\"cpu\", bfloat16_model=" + model + ")\n```\n";
}

FrontMatter front_matter(const CardSource& source) {
  FrontMatter matter;
  if (!source.base_model.empty()) {
    matter.add("base_model", CardValue::list({source.base_model}));
    matter.add("base_model_relation", CardValue::scalar("quantized"));
  }
  matter.add("library_name", CardValue::scalar("dfloat11"));
  for (const auto& [key, value] : source.inherited.entries) matter.add(key, value);
  matter.add("tags", CardValue::list({"dfloat11", "df11", "lossless compression"}));
  return matter;
}

std::string row(std::string_view name, const std::string& before, const std::string& after) {
  return "| " + std::string(name) + " | " + before + " | " + after + " |\n";
}

std::string figures_text(const CardFigures& figures) {
  const auto bits = [&](uint64_t bytes, uint64_t bf16_bytes) {
    return format_fixed(16 * as_double(bytes) / as_double(bf16_bytes), 2);
  };
  std::string text = "| | original | here |\n|---|---|---|\n";
  text += row("parameters", format_count(figures.n_parameters), "the same, bit for bit");
  text += row("weights", format_bytes(as_double(figures.source_weight_bytes)),
              format_bytes(as_double(figures.stored_weight_bytes)) + " (" +
                  format_percent(as_double(figures.stored_weight_bytes),
                                 as_double(figures.source_weight_bytes)) +
                  ")");
  if (figures.grouped_weight_bytes == 0) {
    return text + "\nNo tensor could be coded: all are stored as they were.\n";
  }
  text += row("of these coded", format_bytes(as_double(figures.grouped_weight_bytes)),
              format_bytes(as_double(figures.stored_group_bytes)));
  return text + row("bits per coded weight", "16",
                    bits(figures.stored_group_bytes, figures.grouped_weight_bytes));
}

}  // namespace

Result<CardSource> find_card_source(const Checkpoint& checkpoint, const std::string& base_model) {
  CardSource source;
  if (!base_model.empty() && !is_repository_name(base_model)) {
    return fail(ErrorCode::invalid_argument,
                "\"" + base_model + "\" is no repository name of the form ORG/NAME");
  }
  std::error_code error;
  const fs::path real = fs::canonical(checkpoint.directory(), error);
  if (!error) source.component = component_of(real);
  const std::string card_name(kCardName);
  FrontMatter own, pipeline;
  if (has_file(checkpoint, card_name)) {
    DF11_ASSIGN(own, read_card(checkpoint.directory() / card_name, source.notes));
  }
  if (!source.component.empty() && fs::exists(real.parent_path() / card_name, error)) {
    DF11_ASSIGN(pipeline, read_card(real.parent_path() / card_name, source.notes));
  }
  if (base_model.empty()) {
    find_base_model(checkpoint, own, source);
  } else {
    source.base_model = base_model;
    source.base_model_from = "--base-model";
  }
  inherit(own, true, checkpoint, source);
  inherit(pipeline, false, checkpoint, source);
  return source;
}

std::string model_card(const CardSource& source, const Checkpoint& checkpoint,
                       const CardFigures& figures, const std::string& source_card) {
  const std::string base_link =
      source.base_model.empty()
          ? "a BFloat16 checkpoint"
          : "[" + source.base_model + "](https://huggingface.co/" + source.base_model + ")";
  const std::string part =
      source.component.empty() ? "" : " (its component `" + source.component + "`)";
  const std::string name = source.base_model.empty()
                               ? ""
                               : source.base_model.substr(source.base_model.find('/') + 1) + " ";

  std::string text = front_matter(source).to_text();
  text += "\n# " + name + "DFloat11\n\n";
  text +=
      "The weights of " + base_link + part +
      ", compressed without loss to [DFloat11](https://arxiv.org/abs/2504.11651): the exponents "
      "are\nHuffman-coded, and every weight comes back bit for bit.\n\n";
  text += figures_text(figures);
  text += "\n## Load\n\n" + load_text(source, checkpoint);
  text += "\n## Verify and restore\n\n";
  text +=
      "`df11_manifest.json` has the SHA-256 of every file of the original and of this repository, "
      "and a hash of every\ntensor. In a copy of this repository:\n\n"
      "```\n"
      "df11-verify .                       # decode everything, check it against the manifest\n"
      "df11-verify . --source ORIGINAL     # or compare it with the original, byte for byte\n"
      "df11-decompress . ../restored       # the original files, with their SHA-256\n"
      "```\n\n";
  if (!source_card.empty()) {
    text +=
        "The original's own model card is kept in [" + source_card + "](" + source_card + ").\n\n";
  }
  return text + "Made by df11-compress " + std::string(kVersion) + ".\n";
}

}  // namespace df11
