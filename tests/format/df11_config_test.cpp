// The dfloat11_config entry: reading it, splicing it in, and matching modules as upstream does.
#include "format/df11_config.h"

#include <gtest/gtest.h>

#include <set>

#include "directories/builders.h"
#include "support/result_matchers.h"

namespace df11::test {
namespace {

const Df11Config kEntry{"0.5.0", {{"lm_head", {}}, {R"(model\.layers\.\d+)", {"a", "b.c"}}}};

struct Layout {
  const char* name;
  std::string text;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> list = {
      {"pretty", "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}\n"},
      {"four spaces", "{\n    \"a\": 1\n}\n"},
      {"tabs", "{\n\t\"a\": 1\n}\n"},
      {"one line", R"({"a": 1, "b": {"c": 2}})"},
      {"one line with spaces", R"( { "a" : 1 } )"},
      {"one line and a newline", "{\"a\": 1}\n"},
      {"compact", R"({"a":1})"},
      {"empty", "{}"},
      {"empty with newline", "{}\n"},
      {"empty with a space", "{ }"},
      {"empty over two lines", "{\n}\n"},
      {"no trailing newline", "{\n  \"a\": 1\n}"},
      {"many trailing newlines", "{\n  \"a\": 1\n}\n\n\n"},
      {"CRLF", "{\r\n  \"a\": 1\r\n}\r\n"},
      {"old Mac", "{\r  \"a\": 1\r}\r"},
      {"leading newline", "\n{\n  \"a\": 1\n}"},
      {"braces in strings", "{\n  \"}\": \"{ } \\\" } \\\\\",\n  \"x\": \"}\"\n}\n"},
      {"nested objects", R"({"a": {"b": {"c": {}}}, "d": [{}, {"}": "}"}]})"},
      {"last member is an object", "{\n  \"a\": {\n    \"b\": {}\n  }\n}\n"},
      {"blank line before the brace", "{\n  \"a\": 1\n\n}\n"},
      {"not ASCII", "{\"caf\xc3\xa9\": \"\xe6\xbc\xa2\", \"u\": \"\\u00e9\"}"},
      {"numbers as written",
       R"({"eps": 1e-06, "big": 123456789012345678901234567890, "f": 1.10, "n": -0.0})"},
  };
  return list;
}

TEST(SpliceDf11Config, EveryOtherByteIsKept) {
  const std::string value = kEntry.to_json_text();
  for (const Layout& layout : layouts()) {
    const Result<std::string> spliced = splice_df11_config(layout.text, value);
    ASSERT_TRUE(succeeded(spliced)) << layout.name;
    // What was added is one run of bytes: the source is a prefix and a suffix of the result.
    size_t prefix = 0;
    while (prefix < layout.text.size() && (*spliced)[prefix] == layout.text[prefix]) ++prefix;
    EXPECT_TRUE(spliced->ends_with(layout.text.substr(prefix))) << layout.name << "\n" << *spliced;
    EXPECT_GE(spliced->size(), layout.text.size() + value.size()) << layout.name;

    const Result<Json> before = parse_json(layout.text), after = parse_json(*spliced);
    ASSERT_TRUE(succeeded(after)) << layout.name << "\n" << *spliced;
    Json without = *after;
    without.erase("dfloat11_config");
    EXPECT_EQ(without, *before) << layout.name;
    EXPECT_EQ(after->get_ref<const Json::object_t&>().back().first, "dfloat11_config")
        << layout.name;

    const Result<Df11Config> entry = Df11Config::from_config(*after);
    ASSERT_TRUE(succeeded(entry)) << layout.name;
    EXPECT_EQ(entry->version, kEntry.version);
    EXPECT_EQ(entry->pattern_dict, kEntry.pattern_dict);
    EXPECT_TRUE(
        failed_with(splice_df11_config(*spliced, value), ErrorCode::malformed_config, "already"));
  }
}

TEST(SpliceDf11Config, LooksLikeHandWritten) {
  EXPECT_EQ(*splice_df11_config("{\n  \"a\": 1\n}\n", "1"),
            "{\n  \"a\": 1,\n  \"dfloat11_config\": 1\n}\n");
  EXPECT_EQ(*splice_df11_config("{}", "1"), "{\n  \"dfloat11_config\": 1\n}");
  EXPECT_EQ(*splice_df11_config("", "1"), "{\n  \"dfloat11_config\": 1\n}\n");
  EXPECT_EQ(*splice_df11_config("{\"a\": 1}", "1"), "{\"a\": 1,\n  \"dfloat11_config\": 1\n}");
}

TEST(RemoveDf11Config, UndoesSplicing) {
  for (const Layout& layout : layouts()) {
    const std::string spliced = *splice_df11_config(layout.text, kEntry.to_json_text());
    const Result<std::string> removed = remove_df11_config(spliced);
    ASSERT_TRUE(succeeded(removed)) << layout.name;
    // Splicing gives an object without space before its brace a line break, which stays.
    std::string expected = layout.text;
    const size_t brace = expected.rfind('}');
    const bool space = std::string(" \t\r\n").find(expected[brace - 1]) != std::string::npos;
    if (!space) expected.insert(brace, "\n");
    EXPECT_EQ(*removed, expected) << layout.name;
  }
  EXPECT_EQ(*remove_df11_config(*splice_df11_config("", "1")), "{\n}\n");
}

TEST(RemoveDf11Config, WhereverItIs) {
  EXPECT_EQ(*remove_df11_config(R"({"dfloat11_config":{},"a":1})"), R"({"a":1})");
  EXPECT_EQ(*remove_df11_config(R"({"a":1,"dfloat11_config":[{},"}"],"b":2})"), R"({"a":1,"b":2})");
  EXPECT_EQ(*remove_df11_config(R"({ "a" : 1 , "dfloat11_config" : 3 , "b":2})"),
            R"({ "a" : 1 , "b":2})");
  EXPECT_EQ(*remove_df11_config("{\n  \"dfloat11_config\": {\n  },\n  \"a\": 1\n}"),
            "{\n  \"a\": 1\n}");
  EXPECT_EQ(*remove_df11_config(R"({"dfloat11_config":null})"), "{}");
  EXPECT_EQ(*remove_df11_config(R"({"a":"\\","dfloat11\u005fconfig":"\",\"}"})"), R"({"a":"\\"})");
  // Only the member of the object itself.
  EXPECT_EQ(*remove_df11_config(R"({"a":{"dfloat11_config":1},"dfloat11_config":2})"),
            R"({"a":{"dfloat11_config":1}})");
  EXPECT_TRUE(failed_with(remove_df11_config(R"({"a":{"dfloat11_config":1}})"),
                          ErrorCode::malformed_config, "not in config.json"));
  EXPECT_TRUE(failed_with(remove_df11_config("[]"), ErrorCode::malformed_config));
  EXPECT_TRUE(failed_with(remove_df11_config("{"), ErrorCode::malformed_json));
}

TEST(SpliceDf11Config, RefusesWhatIsNoObject) {
  for (const char* text : {"[]", "null", "1", "\"}\""}) {
    EXPECT_TRUE(failed_with(splice_df11_config(text, "1"), ErrorCode::malformed_config)) << text;
  }
  for (const char* text : {"{", "}", " ", "{} {}", "{\"a\": 1} // }"}) {
    EXPECT_FALSE(splice_df11_config(text, "1")) << text;
  }
}

TEST(SpliceDf11Config, RefusesTextAfterNul) {
  EXPECT_FALSE(splice_df11_config(std::string_view("{\"a\": 1}\0{}", 11), "1"));
}

TEST(Df11Config, RefusesWhatIsNotOfTheKnownForm) {
  const auto parse = [](const std::string& entry) {
    return Df11Config::from_config(*parse_json("{\"dfloat11_config\": " + entry + "}"));
  };
  const std::string good =
      R"({"version": "0.2.0", "threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict": {"a": []}})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return parse(text.replace(text.find(from), from.size(), to));
  };
  ASSERT_TRUE(succeeded(parse(good)));
  EXPECT_TRUE(failed_with(Df11Config::from_config(*parse_json("{}")), ErrorCode::malformed_config));
  for (const char* entry : {"null", "[]", "{}", "\"0.2.0\""}) {
    EXPECT_TRUE(failed_with(parse(entry), ErrorCode::malformed_config)) << entry;
  }
  EXPECT_TRUE(failed_with(with("\"0.2.0\"", "2"), ErrorCode::malformed_config));
  EXPECT_TRUE(failed_with(with("[512]", "[256]"), ErrorCode::unsupported, "256"));
  EXPECT_TRUE(failed_with(with("[512]", "512"), ErrorCode::unsupported));
  EXPECT_TRUE(failed_with(with(": 8", ": 16"), ErrorCode::unsupported, "16"));
  EXPECT_TRUE(failed_with(with("bytes_per_thread", "bytes"), ErrorCode::malformed_config));
  EXPECT_TRUE(failed_with(with("{\"a\": []}", "[]"), ErrorCode::malformed_config));
  EXPECT_TRUE(failed_with(with("[]}", "null}"), ErrorCode::malformed_config));
  EXPECT_TRUE(failed_with(with("[]}", "[1]}"), ErrorCode::malformed_config));
}

// Names of modules as the published models have them, and for each the group that it is in, or
// none.
struct Probe {
  std::string module;
  std::string pattern;  // key of the pattern_dict; empty: no group
};

// The expected matches are worked out by hand for every published pattern_dict; re.fullmatch of
// Python 3.11 gives the same.
const std::map<std::string, std::vector<Probe>>& probes() {
  const std::string layers = R"(model.layers.\d+)", escaped = R"(model\.layers\.\d+)";
  const std::string double_blocks = R"(transformer_blocks\.\d+)",
                    single = R"(single_transformer_blocks\.\d+)";
  static const std::map<std::string, std::vector<Probe>> map = {
      {"qwen3-8b",
       {{"lm_head", "lm_head"},
        {"model.embed_tokens", "model.embed_tokens"},
        {"model.layers.0", layers},
        {"model.layers.35", layers},
        {"modelXlayersX7", layers},
        {"model.layers.0.mlp", ""},
        {"model.layers.", ""},
        {"model.layers.x", ""},
        {"xmodel.layers.0", ""},
        {"model.layers.0\n", ""},
        {"model.norm", ""},
        {"", ""}}},
      {"qwen3-4b (tied)",
       {{"model.layers.12", layers}, {"lm_head", ""}, {"model.embed_tokens", ""}}},
      {"llama-3.3-70b (escaped dots)",
       {{"model.layers.79", escaped},
        {"modelXlayersX7", ""},
        {"model.embed_tokens", R"(model\.embed_tokens)"}}},
      {"phi-4", {{"model.layers.39", layers}, {"lm_head", "lm_head"}}},
      {"gemma-3 (tied)",
       {{"language_model.model.layers.3", R"(language_model.model.layers.\d+)"},
        {"model.layers.3", ""}}},
      {"omnigen2-mllm (Qwen2.5-VL)",
       {{"visual.blocks.31", R"(visual\.blocks\.\d+)"},
        {"visual.merger.mlp", R"(visual\.merger\.mlp)"},
        {"visual.merger", ""},
        {"visual.merger.mlp.0", ""}}},
      {"omnigen2-transformer",
       {{"noise_refiner.0", R"(noise_refiner\.\d+)"},
        {"ref_image_refiner.1", R"(ref_image_refiner\.\d+)"},
        {"context_refiner.1", R"(context_refiner\.\d+)"},
        {"layers.31", R"(layers\.\d+)"},
        {"model.layers.31", ""}}},
      {"bagel-7b-mot",
       {{"language_model.lm_head", R"(language_model\.lm_head)"},
        {"vit_model", "vit_model"},
        {"vit_model.x", ""},
        {"language_model.model.layers.9", R"(language_model\.model\.layers.\d+)"}}},
      {"flux-dev-diffusers (unescaped dots)",
       {{"transformer_blocks.18", R"(transformer_blocks.\d+)"},
        {"single_transformer_blocks.37", R"(single_transformer_blocks.\d+)"}}},
      {"flux-kontext-dev-diffusers (escaped dots)",
       {{"transformer_blocks.18", double_blocks}, {"single_transformer_blocks.37", single}}},
      {"chroma-diffusers",
       {{"distilled_guidance_layer", "distilled_guidance_layer"},
        {"distilled_guidance_layer.layers.0", ""},
        {"transformer_blocks.0", double_blocks},
        {"single_transformer_blocks.0", single}}},
      {"chroma1-base mingyi456",
       {{"distilled_guidance_layer.layers.4", R"(distilled_guidance_layer\.layers\.\d+)"},
        {"distilled_guidance_layer", ""}}},
      {"qwen-image (single file diffusion_pytorch_model.safetensors)",
       {{"transformer_blocks.59", double_blocks}, {"single_transformer_blocks.0", ""}}},
      {"wan-diffusers", {{"blocks.39", R"(blocks\.\d+)"}, {"vace_blocks.39", ""}}},
      {"hidream-i1-diffusers",
       {{"double_stream_blocks.15", R"(double_stream_blocks\.\d+)"},
        {"single_stream_blocks.31", R"(single_stream_blocks\.\d+)"},
        {"double_stream_blocks.15.block", ""}}},
      {"sd35-large-diffusers",
       {{"transformer_blocks.0", R"(transformer_blocks\.([0-9]|[1-2][0-9]|3[0-6]))"},
        {"transformer_blocks.29", R"(transformer_blocks\.([0-9]|[1-2][0-9]|3[0-6]))"},
        {"transformer_blocks.36", R"(transformer_blocks\.([0-9]|[1-2][0-9]|3[0-6]))"},
        {"transformer_blocks.37", R"(transformer_blocks\.37)"},
        {"transformer_blocks.38", ""},
        {"transformer_blocks.370", ""}}},
  };
  return map;
}

TEST(ModulePatterns, PublishedPatternDicts) {
  const Result<Json> published =
      parse_json(read_file(DF11_GOLDEN_DIR "/published_pattern_dicts.json"));
  ASSERT_TRUE(succeeded(published));
  std::set<std::string> seen;
  for (const auto& [model, entry] : published->get_ref<const Json::object_t&>()) {
    const Json config = {{"dfloat11_config",
                          {{"version", entry["version"]},
                           {"threads_per_block", {512}},
                           {"bytes_per_thread", 8},
                           {"pattern_dict", entry["pattern_dict"]}}}};
    const Result<Df11Config> parsed = Df11Config::from_config(config);
    ASSERT_TRUE(succeeded(parsed)) << model;
    ASSERT_EQ(parsed->pattern_dict.size(), entry["pattern_dict"].size()) << model;
    const Result<ModulePatterns> patterns = ModulePatterns::compile(parsed->pattern_dict);
    ASSERT_TRUE(succeeded(patterns)) << model;
    ASSERT_TRUE(probes().contains(model)) << model;
    seen.insert(model);
    for (const Probe& probe : probes().at(model)) {
      const auto members = patterns->members_of(probe.module);
      ASSERT_TRUE(succeeded(members)) << model << ": " << probe.module;
      ASSERT_EQ(*members != nullptr, !probe.pattern.empty()) << model << ": " << probe.module;
      if (*members == nullptr) continue;
      EXPECT_EQ(**members, entry["pattern_dict"][probe.pattern].get<std::vector<std::string>>())
          << model << ": " << probe.module;
    }
  }
  EXPECT_EQ(seen.size(), probes().size());
}

TEST(FindPatternDict, TakesThreeForms) {
  const PatternDict expected = {{"b\\d+", {"x", "y"}}, {"a", {}}};  // in the order of the text
  for (const char* text : {R"({"b\\d+": ["x", "y"], "a": []})",
                           R"({"pattern_dict": {"b\\d+": ["x", "y"], "a": []}, "version": 1})",
                           R"({"dfloat11_config": {"pattern_dict": {"b\\d+": ["x", "y"], "a": []}},
                               "hidden_size": 1})"}) {
    const Result<PatternDict> patterns = find_pattern_dict(*parse_json(text));
    ASSERT_TRUE(succeeded(patterns)) << text;
    EXPECT_EQ(*patterns, expected) << text;
  }
  for (const char* text : {"[]", "1", R"({"a": {}})", R"({"a": [1]})", R"({"pattern_dict": []})",
                           R"({"dfloat11_config": []})", R"({"hidden_size": 1})"}) {
    EXPECT_TRUE(failed_with(find_pattern_dict(*parse_json(text)), ErrorCode::malformed_config))
        << text;
  }
}

TEST(ModulePatterns, PythonSemantics) {
  const auto matches = [](const std::string& pattern, const std::string& module) {
    const Result<ModulePatterns> patterns = ModulePatterns::compile({{pattern, {}}});
    return patterns && *patterns->members_of(module) != nullptr;
  };
  EXPECT_TRUE(matches(R"(layers\.\d++)", "layers.12"));  // possessive: Python 3.11
  EXPECT_FALSE(matches(R"(layers\.\d++2)", "layers.12"));
  EXPECT_TRUE(matches(R"(layers\.\d+2)", "layers.12"));
  EXPECT_TRUE(matches(R"(layers\.(?>\d+))", "layers.12"));
  EXPECT_TRUE(matches("a|ab", "ab"));  // fullmatch tries the second branch
  EXPECT_FALSE(matches("a", "a\n"));
  EXPECT_FALSE(matches("a$", "a\n"));
  EXPECT_FALSE(matches("a", "ba"));
  EXPECT_TRUE(matches(R"((?P<kind>up|down)_blocks\.\d+(?!\d))", "up_blocks.3"));
  EXPECT_TRUE(matches(R"(layers\.(?:[02468]))", "layers.4"));
  EXPECT_TRUE(matches(".", "\xc3\xa9"));  // characters, not bytes
  EXPECT_TRUE(matches("", ""));
}

TEST(ModulePatterns, FirstMatchWins) {
  const Result<ModulePatterns> patterns =
      ModulePatterns::compile({{"a.*", {"first"}}, {"ab", {"second"}}});
  ASSERT_TRUE(succeeded(patterns));
  EXPECT_EQ((**patterns->members_of("ab"))[0], "first");
}

TEST(ModulePatterns, HostilePatterns) {
  for (const char* pattern : {"(", "[", "a{2,1}", "*", "(?P<n", "\\"}) {
    EXPECT_TRUE(failed_with(ModulePatterns::compile({{pattern, {}}}), ErrorCode::malformed_config))
        << pattern;
  }
  EXPECT_TRUE(failed_with(ModulePatterns::compile({{std::string(70'000, 'a'), {}}}),
                          ErrorCode::limit_exceeded));
  const std::string long_name(40, 'a');
  for (const char* pattern : {"(a+)+b", "(a|a)*b", "(a|aa)+$b", "(.*)*b"}) {
    const Result<ModulePatterns> patterns = ModulePatterns::compile({{pattern, {}}});
    ASSERT_TRUE(succeeded(patterns)) << pattern;
    const auto members = patterns->members_of(long_name);
    // PCRE2 may see without trying that there is no 'b'; then the answer is "no match".
    if (members) {
      EXPECT_EQ(*members, nullptr) << pattern;
    } else {
      EXPECT_TRUE(failed_with(members, ErrorCode::malformed_config, "limits")) << pattern;
    }
  }
  // What one match may cost, many may not.
  const Result<ModulePatterns> slow = ModulePatterns::compile({{"(a+)+[bc]", {}}});
  ASSERT_TRUE(succeeded(slow));
  const std::string name(16, 'a');
  ASSERT_TRUE(succeeded(slow->members_of(name)));
  size_t n_matches = 1;
  while (n_matches < 100'000 && slow->members_of(name)) ++n_matches;
  EXPECT_LT(n_matches, 100'000u);
  // Nor may matches that fail at once: long names are read before.
  const Result<ModulePatterns> quick = ModulePatterns::compile({{"b", {}}});
  ASSERT_TRUE(succeeded(quick));
  const std::string long_text(1 << 20, 'a');
  for (n_matches = 0; n_matches < 10'000 && quick->members_of(long_text);) ++n_matches;
  EXPECT_LT(n_matches, 10'000u);
  const Result<ModulePatterns> catastrophic = ModulePatterns::compile({{"(a+)+[bc]", {}}});
  ASSERT_TRUE(succeeded(catastrophic));
  EXPECT_TRUE(
      failed_with(catastrophic->members_of(long_name), ErrorCode::malformed_config, "limits"));
}

}  // namespace
}  // namespace df11::test
