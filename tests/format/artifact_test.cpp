// A DF11 directory whose parts contradict each other is refused with malformed_group.
#include "format/artifact.h"

#include <gtest/gtest.h>

#include "directories/builders.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

const std::string kModule = "model.layers.0.mlp.up_proj";
constexpr uint64_t kElements = 64 * 96;
using Tensors = std::map<std::string, Tensor>;

std::string le32(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (const uint32_t value : values) bytes.append(reinterpret_cast<const char*>(&value), 4);
  return bytes;
}

std::string le64(std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) bytes.append(reinterpret_cast<const char*>(&value), 8);
  return bytes;
}

// U8 or I64 of rank 1 with these bytes.
void set_bytes(Tensor& tensor, std::string bytes) {
  tensor.shape = {8 * bytes.size() / dtype_bits(tensor.dtype)};
  tensor.bytes = std::move(bytes);
}

class ArtifactTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_checkpoint(directory_ / "source");
    compress_or_throw(directory_ / "source", path());
    shard_ = path() / "model_layers_0.safetensors";
    shard_bytes_ = read_file(shard_);
    config_text_ = read_file(path() / "config.json");
    fs::remove(path() / kManifestName);  // else its hashes would tell first
  }

  fs::path path() const { return directory_ / "artifact"; }

  // Opens the artifact and loads its one group.
  Result<Group> load() const {
    static std::optional<Artifact> artifact;  // Group points into it
    Result<Artifact> opened = Artifact::open(path());
    if (!opened) return fail(opened.error());
    artifact = std::move(*opened);
    return artifact->load_group(artifact->groups().at(0));
  }

  // Applies `edit` to the intact shard; the six tensors are under their short names.
  Result<Group> load_edited(const std::function<void(Tensors&)>& edit) const {
    write_file(shard_, shard_bytes_);
    edit_safetensors(shard_, [&](Tensors& tensors) {
      Tensors group;
      for (const std::string_view name : kGroupTensors) {
        const std::string full = kModule + "." + std::string(name);
        group[std::string(name)] = tensors.at(full);
        tensors.erase(full);
      }
      edit(group);
      for (auto& [name, tensor] : group) tensors[kModule + "." + name] = std::move(tensor);
    });
    return load();
  }

  ::testing::AssertionResult malformed(const std::function<void(Tensors&)>& edit,
                                       std::string_view text = {}) const {
    return failed_with(load_edited(edit), ErrorCode::malformed_group, text);
  }

  TemporaryDirectory directory_;
  fs::path shard_;
  std::string shard_bytes_, config_text_;
};

TEST_F(ArtifactTest, IntactGroup) {
  const Result<Group> group = load_edited([](Tensors&) {});
  ASSERT_TRUE(succeeded(group));
  EXPECT_EQ(group->n_blocks(), 1u);
  EXPECT_EQ(group->positions, (std::vector<uint32_t>{0, kElements}));
  EXPECT_EQ(group->member_elements, (std::vector<uint64_t>{kElements}));
  EXPECT_EQ(group->entry->members, (std::vector<std::string>{kModule + ".weight"}));
}

TEST_F(ArtifactTest, AnyOfTheSixMissing) {
  for (const std::string_view name : kGroupTensors) {
    const auto edit = [&](Tensors& group) { group.erase(std::string(name)); };
    if (name == kEncodedExponentName) {
      // Without it upstream sees no group; the module's other tensors are then verbatim tensors.
      write_file(shard_, shard_bytes_);
      edit_safetensors(shard_,
                       [&](Tensors& tensors) { tensors.erase(kModule + "." + std::string(name)); });
      const Result<Artifact> artifact = Artifact::open(path());
      ASSERT_TRUE(succeeded(artifact));
      EXPECT_TRUE(artifact->groups().empty());
      continue;
    }
    EXPECT_TRUE(malformed(edit, std::string(name) + " is missing"));
  }
}

TEST_F(ArtifactTest, OtherDtypesAndRanks) {
  for (const std::string_view name : kGroupTensors) {
    EXPECT_TRUE(malformed([&](Tensors& group) {
      Tensor& tensor = group.at(std::string(name));
      tensor.dtype = name == kSplitPositionsName ? Dtype::kU64 : Dtype::kI8;
    })) << name;
    EXPECT_TRUE(malformed([&](Tensors& group) {
      Tensor& tensor = group.at(std::string(name));
      tensor.shape = name == kLutsName ? Shape{tensor.bytes.size()} : Shape{1, tensor.shape.at(0)};
    })) << name;
  }
  EXPECT_TRUE(malformed(
      [](Tensors& group) { std::swap(group.at("luts").shape[0], group.at("luts").shape[1]); }));
}

TEST_F(ArtifactTest, NoWeights) {
  for (const std::string_view name :
       {kSignMantissaName, kEncodedExponentName, kGapsName, kOutputPositionsName}) {
    EXPECT_TRUE(malformed([&](Tensors& group) { set_bytes(group.at(std::string(name)), ""); }))
        << name;
  }
}

TEST_F(ArtifactTest, Gaps) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{319}, size_t{321}, size_t{640}}) {
    EXPECT_TRUE(malformed(
        [&](Tensors& group) { set_bytes(group.at("gaps"), std::string(n, '\0')); }, "gaps"))
        << n;
  }
}

TEST_F(ArtifactTest, CodeAndPositionsOfDifferentBlockCounts) {
  EXPECT_TRUE(malformed([](Tensors& group) {
    set_bytes(group.at("encoded_exponent"),
              group.at("encoded_exponent").bytes + std::string(4096, '\0'));
  }));
  EXPECT_TRUE(malformed([](Tensors& group) {
    set_bytes(group.at("output_positions"), le32({0, 100, kElements}));
  }));
  EXPECT_TRUE(malformed(
      [](Tensors& group) { set_bytes(group.at("output_positions"), std::string(7, '\0')); }));
}

TEST_F(ArtifactTest, Positions) {
  for (const auto& bytes :
       {le32({1, kElements}), le32({0, kElements - 1}), le32({0, kElements + 1}), le32({0, 0}),
        le32({kElements, kElements}), le32({0, 0xffffffff})}) {
    EXPECT_TRUE(malformed([&](Tensors& group) { set_bytes(group.at("output_positions"), bytes); }));
  }
  for (const auto& bytes : {le32({0}), le32({1}), le32({kElements})}) {
    EXPECT_TRUE(malformed([&](Tensors& group) { set_bytes(group.at("output_positions"), bytes); }));
  }
}

// A block of 32,768 bits holds at most as many weights.
TEST_F(ArtifactTest, MoreWeightsThanBits) {
  const uint32_t n = 32769;
  EXPECT_TRUE(malformed([&](Tensors& group) {
    set_bytes(group.at("sign_mantissa"), std::string(n, '\0'));
    set_bytes(group.at("output_positions"), le32({0, n}));
  }));
}

TEST_F(ArtifactTest, PositionsOfSeveralBlocks) {
  const auto blocks = [](const std::string& positions) {
    return [positions](Tensors& group) {
      set_bytes(group.at("encoded_exponent"), std::string(3 * 4096, '\0'));
      set_bytes(group.at("gaps"), std::string(3 * 320, '\0'));
      set_bytes(group.at("output_positions"), positions);
    };
  };
  const auto edit = [&](uint32_t a, uint32_t b) { return blocks(le32({0, a, b, kElements})); };
  EXPECT_TRUE(succeeded(load_edited(edit(2000, 4000))));
  EXPECT_TRUE(
      succeeded(load_edited(edit(2000, kElements))));  // the last block may hold a tail only
  // Upstream leaves out the position of a last block that holds a tail only, and nothing else.
  const Result<Group> one_left_out = load_edited(blocks(le32({0, 2000, kElements})));
  ASSERT_TRUE(succeeded(one_left_out));
  EXPECT_EQ(one_left_out->positions, (std::vector<uint32_t>{0, 2000, kElements, kElements}));
  EXPECT_TRUE(malformed(blocks(le32({0, 2000, 4000}))));
  EXPECT_TRUE(malformed(blocks(le32({0, kElements}))));
  EXPECT_TRUE(malformed(edit(4000, 2000), "delimit a block"));
  EXPECT_TRUE(malformed(edit(2000, 2000), "delimit a block"));
  EXPECT_TRUE(malformed(edit(0, 2000), "delimit a block"));
  EXPECT_TRUE(malformed(edit(2000, kElements + 1), "delimit a block"));
}

TEST_F(ArtifactTest, Tables) {
  const auto rows = [](uint64_t n) {
    return [n](Tensors& group) {
      group.at("luts").shape = {n, 256};
      group.at("luts").bytes.resize(n * 256);
    };
  };
  EXPECT_TRUE(malformed(rows(0)));
  EXPECT_TRUE(malformed(rows(1)));
  EXPECT_TRUE(malformed(rows(19)));
  EXPECT_TRUE(malformed(
      [](Tensors& group) { group.at("luts").bytes.back() = 33; }));  // length of exponent 255
}

TEST_F(ArtifactTest, SplitPositions) {
  EXPECT_TRUE(malformed([](Tensors& group) { set_bytes(group.at("split_positions"), le64({1})); }));
  EXPECT_TRUE(malformed(
      [](Tensors& group) { set_bytes(group.at("split_positions"), std::string(8000, '\0')); }));
}

TEST_F(ArtifactTest, SplitPositionsOfSeveralMembers) {
  const std::string from = R"(up_proj": [])";
  std::string text = config_text_;
  ASSERT_NE(text.find(from), text.npos);
  write_file(path() / "config.json",
             text.replace(text.find(from), from.size(), R"(up_proj": ["a", "b", "c"])"));
  const auto splits = [](std::initializer_list<uint64_t> values) {
    return
        [bytes = le64(values)](Tensors& group) { set_bytes(group.at("split_positions"), bytes); };
  };
  const Result<Group> group = load_edited(splits({1000, 1000}));
  ASSERT_TRUE(succeeded(group));
  EXPECT_EQ(group->member_elements, (std::vector<uint64_t>{1000, 0, kElements - 1000}));
  EXPECT_EQ(group->entry->members[1], kModule + ".b.weight");
  EXPECT_TRUE(malformed(splits({})));
  EXPECT_TRUE(malformed(splits({1000})));
  EXPECT_TRUE(malformed(splits({1000, 2000, 3000})));
  EXPECT_TRUE(malformed(splits({2000, 1000}), "ascending"));
  EXPECT_TRUE(malformed(splits({1000, kElements + 1}), "ascending"));
  EXPECT_TRUE(malformed(splits({~uint64_t{0}, ~uint64_t{0}}), "ascending"));
}

TEST_F(ArtifactTest, GroupThatNoPatternMatches) {
  std::string text = config_text_;
  const std::string from = "up_proj";
  write_file(path() / "config.json", text.replace(text.find(from), from.size(), "down_proj"));
  EXPECT_TRUE(failed_with(load(), ErrorCode::malformed_group, "no pattern"));
}

TEST_F(ArtifactTest, TheSixMayLieInDifferentShards) {
  edit_safetensors(shard_, [&](Tensors& tensors) {
    const std::string name = kModule + ".gaps";
    write_safetensors(path() / "extra.safetensors", {tensors.at(name)});
    tensors.erase(name);
  });
  EXPECT_TRUE(succeeded(load()));
}

TEST_F(ArtifactTest, NotAnArtifact) {
  EXPECT_TRUE(failed_with(Artifact::open(directory_ / "absent"), ErrorCode::not_found));
  write_file(path() / "config.json", "{}");
  EXPECT_FALSE(Artifact::open(path()));
  fs::remove(path() / "config.json");
  EXPECT_FALSE(Artifact::open(path()));
}

}  // namespace
}  // namespace df11::test
