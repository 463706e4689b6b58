// Input: the text of a config.json. With an entry of ours: patterns compile and match within
// limits, and writing keeps the entry. Without: splicing one in keeps every other value.
#include "format/checkpoint.h"
#include "format/df11_config.h"
#include "fuzz_input.h"

using namespace df11;
using df11::test::require;

namespace {

constexpr std::string_view kModules[] = {"", "lm_head", "model.layers.0.mlp.up_proj",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                         "\xc3\xa9.\xe2\x82\xac.7"};

void check_entry(const Df11Config& config) {
  const Result<std::string> text = splice_df11_config("", config.to_json_text());
  require(text.has_value(), "an entry can be written");
  const Result<Json> json = parse_json(*text);
  require(json.has_value(), "what is written is JSON");
  const Result<Df11Config> again = Df11Config::from_config(*json);
  require(again && again->version == config.version && again->pattern_dict == config.pattern_dict,
          "what is written can be read");

  const Result<ModulePatterns> patterns = ModulePatterns::compile(config.pattern_dict);
  if (!patterns) return;
  for (const std::string_view module : kModules) {
    const auto members = patterns->members_of(module);
    if (!members) return;  // over a limit
  }
}

void check_splice(std::string_view text, const Json& config) {
  const Result<std::string> spliced =
      splice_df11_config(text, Df11Config{"0.5.0", {{"lm_head", {}}}}.to_json_text());
  require(spliced.has_value() == config.is_object(), "every object can be spliced into");
  if (!spliced) return;
  Result<Json> again = parse_json(*spliced);
  require(again && again->size() == config.size() + 1, "one member more");
  require(Df11Config::from_config(*again).has_value(), "the entry is there");
  again->erase(std::string(kDf11ConfigKey));
  require(*again == config, "nothing else changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const std::string_view text = test::FuzzInput(data, n_bytes).text();
  const Result<Json> config = parse_json(text);
  if (!config) return 0;
  if (const Result<Df11Config> entry = Df11Config::from_config(*config)) check_entry(*entry);
  if (json_find(*config, kDf11ConfigKey) == nullptr) check_splice(text, *config);
  return 0;
}
