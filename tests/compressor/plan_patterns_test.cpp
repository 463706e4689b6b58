// The pattern_dict that names the groups of an artifact.
#include "compressor/plan_patterns.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace df11::test {
namespace {

using Names = std::vector<std::string>;
using Groups = std::vector<CodedModule>;

Groups without_members(const Names& modules) {
  Groups groups;
  for (const std::string& module : modules) groups.push_back({module, {}});
  return groups;
}

PatternDict patterns_of(const Groups& groups, const Names& others = {},
                        const PatternDict& preferred = {}) {
  const Result<PatternDict> patterns = patterns_for(groups, others, preferred);
  EXPECT_TRUE(succeeded(patterns));
  return patterns.value_or(PatternDict{});
}

TEST(PatternsFor, Generalises) {
  EXPECT_EQ(patterns_of(without_members(
                {"lm_head", "model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"})),
            (PatternDict{{"lm_head", {}}, {R"(model\.layers\.\d+\.mlp\.up_proj)", {}}}));
  EXPECT_EQ(patterns_of({}, {"a"}), PatternDict{});
}

TEST(PatternsFor, FallsBackToExactNames) {
  // Layer 1's up_proj stays verbatim, so the general pattern would claim it.
  EXPECT_EQ(patterns_of(without_members({"l.0.up", "l.2.up", "l.0.down", "l.1.down"}),
                        {"l.1.up", "norm"}),
            (PatternDict{{R"(l\.\d+\.down)", {}}, {R"(l\.0\.up)", {}}, {R"(l\.2\.up)", {}}}));
}

TEST(PatternsFor, MatchesGroupsAndNothingElse) {
  const Names groups = {"a.0.b",   "a.1.b", "a.0.c.3",       "a.0.c+d", "a.0.c(d)*",
                        "x-y.0.z", "0",     "caf\xc3\xa9.7", "a b.0"};
  const Names others = {"a.0.e", "aX0Xb", "a.0.c.3.f", "a.0.ccd", "1.0", "a.0", "x.0.z"};
  const Result<ModulePatterns> patterns =
      ModulePatterns::compile(patterns_of(without_members(groups), others));
  ASSERT_TRUE(succeeded(patterns));
  for (const std::string& module : groups)
    EXPECT_NE(*patterns->members_of(module), nullptr) << module;
  for (const std::string& module : others)
    EXPECT_EQ(*patterns->members_of(module), nullptr) << module;
}

TEST(PatternsFor, OddNames) {
  for (const std::string& module :
       {std::string(".0.x"), std::string("..0."), std::string(""), std::string("a..0"),
        std::string("a\n.0"), std::string("a\0.0", 4)}) {
    const Result<ModulePatterns> patterns =
        ModulePatterns::compile(patterns_of(without_members({module})));
    ASSERT_TRUE(succeeded(patterns)) << module;
    EXPECT_NE(*patterns->members_of(module), nullptr) << "\"" << module << "\"";
  }
}

TEST(PatternsFor, OnePatternForAllBlocksWithTheSameMembers) {
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}, {"l.1", {"q", "k"}}}, {"l.0.norm"}),
            (PatternDict{{R"(l\.\d+)", {"q", "k"}}}));
}

TEST(PatternsFor, BlocksWithOtherMembersHaveTheirOwn) {
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}, {"l.1", {"q"}}, {"l.2", {"q", "k"}}}),
            (PatternDict{{R"(l\.0|l\.2)", {"q", "k"}}, {R"(l\.1)", {"q"}}}));
  // Order is part of the members.
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}, {"l.1", {"k", "q"}}}),
            (PatternDict{{R"(l\.0)", {"q", "k"}}, {R"(l\.1)", {"k", "q"}}}));
}

TEST(PatternsFor, ABlockThatIsNoGroupIsNotMatched) {
  // Layer 1 is there, with a weight that stayed verbatim, or with a group of its own inside.
  EXPECT_EQ(patterns_of({{"l.0", {"q"}}, {"l.2", {"q"}}}, {"l.1.q"}),
            (PatternDict{{R"(l\.0|l\.2)", {"q"}}}));
  EXPECT_EQ(patterns_of({{"l.0", {"q"}}, {"l.1.q", {}}}),
            (PatternDict{{R"(l\.0)", {"q"}}, {R"(l\.\d+\.q)", {}}}));
}

TEST(PatternsFor, AlternativesStayWithinTheLimitOfAPattern) {
  Groups groups;
  for (int i = 0; i < 3000; ++i)
    groups.push_back({"model.layers." + std::to_string(i), {i == 0 ? "a" : "b"}});
  const Result<ModulePatterns> patterns = ModulePatterns::compile(patterns_of(groups));
  ASSERT_TRUE(succeeded(patterns));
  for (const CodedModule& group : groups) {
    const auto members = patterns->members_of(group.module);
    ASSERT_TRUE(succeeded(members));
    ASSERT_NE(*members, nullptr) << group.module;
    EXPECT_EQ(**members, group.members);
  }
}

TEST(PatternsFor, PreferredWhereItFits) {
  const PatternDict published = {{"lm_head", {}}, {"l.\\d+", {"q", "k"}}, {"embed", {}}};
  EXPECT_EQ(patterns_of({{"embed", {}}, {"l.0", {"q", "k"}}, {"l.1", {"q", "k"}}, {"lm_head", {}}},
                        {"l.0.norm", "norm"}, published),
            published);
  // Tied: the head and the embedding are no groups.
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}}, {"embed"}, published),
            (PatternDict{{"l.\\d+", {"q", "k"}}}));
}

TEST(PatternsFor, PreferredThatDoesNotFitIsReplaced) {
  const PatternDict published = {{"l.\\d+", {"q", "k"}}};
  // Another order, a member less, a layer that is no group.
  EXPECT_EQ(patterns_of({{"l.0", {"k", "q"}}}, {}, published),
            (PatternDict{{R"(l\.\d+)", {"k", "q"}}}));
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}, {"l.1", {"q"}}}, {}, published),
            (PatternDict{{R"(l\.0)", {"q", "k"}}, {R"(l\.1)", {"q"}}}));
  EXPECT_EQ(patterns_of({{"l.0", {"q", "k"}}}, {"l.1.q"}, published),
            (PatternDict{{R"(l\.0)", {"q", "k"}}}));
  // Two preferred patterns for one module: the first.
  EXPECT_EQ(patterns_of({{"l.0", {"q"}}}, {}, {{"l..", {"q"}}, {".*0", {"q"}}}).size(), 1u);
  EXPECT_TRUE(failed_with(patterns_for({}, {}, {{"(", {}}}), ErrorCode::malformed_config));
}

}  // namespace
}  // namespace df11::test
