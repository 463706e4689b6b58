// The C interface on the CPU.
#include "decoder/capi/df11.h"

#include <gtest/gtest.h>

#include <cstring>

#include "directories/builders.h"
#include "support/capi_tensors.h"
#include "support/named_inputs.h"
#include "support/temporary_directory.h"

namespace df11::test {
namespace {

TEST(Capi, DecodesGroupsInMemory) {
  for (const NamedInput& input : named_inputs()) {
    const GroupTensors g = *encode_group(input.spans(), Executor(1), 1 << 20);
    const df11_group_tensors tensors = capi_tensors(g);
    df11_group* group = nullptr;
    ASSERT_EQ(df11_make_group(&tensors, &group), DF11_OK) << df11_last_error();
    std::vector<uint16_t> words(df11_n_elements(group));
    EXPECT_EQ(df11_decode_cpu(group, words.data(), 2), DF11_OK) << df11_last_error();
    EXPECT_TRUE(words == input.words()) << input.name;
    df11_free_group(group);
  }
}

TEST(Capi, DecodesAnArtifact) {
  const TemporaryDirectory directory;
  write_tiny_checkpoint(directory / "source");
  ASSERT_TRUE(run_compress(directory / "source", directory / "artifact"));
  df11_artifact* artifact = nullptr;
  ASSERT_EQ(df11_open_artifact((directory / "artifact").c_str(), &artifact), DF11_OK)
      << df11_last_error();
  ASSERT_GT(df11_n_groups(artifact), 0u);
  std::map<std::string, Tensor> source;
  for (const Tensor& tensor : tiny_tensors()) source[tensor.name] = tensor;
  for (size_t i = 0; i < df11_n_groups(artifact); ++i) {
    EXPECT_NE(df11_group_module(artifact, i), nullptr);
    std::vector<uint64_t> elements(df11_group_members(artifact, i));
    ASSERT_EQ(df11_member_elements(artifact, i, elements.data()), DF11_OK) << df11_last_error();
    df11_group* group = nullptr;
    ASSERT_EQ(df11_load_group(artifact, i, &group), DF11_OK) << df11_last_error();
    ASSERT_EQ(df11_n_elements(group), df11_group_elements(artifact, i));
    std::vector<uint16_t> words(df11_n_elements(group));
    ASSERT_EQ(df11_decode_cpu(group, words.data(), 1), DF11_OK) << df11_last_error();
    const uint16_t* member = words.data();
    for (size_t m = 0; m < elements.size(); ++m) {
      const std::string& bytes = source.at(df11_member_name(artifact, i, m)).bytes;
      ASSERT_EQ(bytes.size(), 2 * elements[m]);
      EXPECT_EQ(std::memcmp(bytes.data(), member, bytes.size()), 0);
      member += elements[m];
    }
    df11_free_group(group);
  }
  EXPECT_EQ(df11_group_module(artifact, 99), nullptr);
  df11_group* group = nullptr;
  EXPECT_EQ(df11_load_group(artifact, 99, &group), DF11_INVALID_ARGUMENT);
  df11_close_artifact(artifact);
}

TEST(Capi, ReportsErrors) {
  df11_artifact* artifact = nullptr;
  EXPECT_EQ(df11_open_artifact("/nonexistent", &artifact), DF11_NOT_FOUND);
  EXPECT_NE(std::string(df11_last_error()).find("/nonexistent"), std::string::npos);
  EXPECT_STREQ(df11_status_name(DF11_NOT_FOUND), "not_found");
  EXPECT_STREQ(df11_status_name(DF11_OK), "ok");
  EXPECT_STREQ(df11_status_name(static_cast<df11_status>(31)), "unknown");
  EXPECT_EQ(df11_open_artifact(nullptr, &artifact), DF11_INVALID_ARGUMENT);
  EXPECT_EQ(df11_decode_cpu(nullptr, nullptr, 0), DF11_INVALID_ARGUMENT);
  EXPECT_EQ(df11_api_version(), DF11_API_VERSION);

  GroupTensors g = *encode_group(named_inputs()[0].spans(), Executor(1), 1 << 20);
  df11_group* group = nullptr;
  df11_group_tensors tensors = capi_tensors(g);
  tensors.gaps_bytes -= 1;
  EXPECT_EQ(df11_make_group(&tensors, &group), DF11_MALFORMED_GROUP);
  tensors = capi_tensors(g);
  tensors.size = 8;
  EXPECT_EQ(df11_make_group(&tensors, &group), DF11_INVALID_ARGUMENT);
  EXPECT_EQ(group, nullptr);
  df11_free_group(nullptr);
  df11_close_artifact(nullptr);
}

TEST(Capi, SaysWhyThereIsNoCuda) {
  if (df11_cuda_available() == DF11_OK) GTEST_SKIP() << "there is CUDA";
  EXPECT_EQ(df11_cuda_available(), DF11_UNSUPPORTED);
  const std::string text = df11_last_error();
  EXPECT_TRUE(text == "built without CUDA" || text.starts_with("no CUDA device")) << text;
  EXPECT_EQ(df11_cuda_devices(), 0);
}

}  // namespace
}  // namespace df11::test
