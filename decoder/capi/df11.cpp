#include "decoder/capi/df11.h"

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "decoder/cuda/cuda_decoder.h"
#include "decoder/host_group.h"
#include "format/artifact.h"
#include "format/version.h"

struct df11_artifact {
  df11::Artifact artifact;
};
struct df11_group {
  df11::HostGroup group;
};
struct df11_cuda_group {
  df11::cuda::PreparedGroup group;
};

namespace {

using namespace df11;

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

df11_status failed(df11_status status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {  // no memory for the text: the status says it
  }
  return status;
}

// Runs `body`, which returns a Result<void>; nothing is thrown into the caller's language.
template <typename Body>
df11_status guarded(const Body& body) noexcept {
  try {
    const Result<void> result = body();
    if (result) return DF11_OK;
    last_error() = result.error().describe();
    return static_cast<df11_status>(result.error().code);
  } catch (const std::bad_alloc&) {
    return failed(DF11_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(DF11_INTERNAL_ERROR, error.what());
  }
}

auto missing(const char* what) {
  return fail(ErrorCode::invalid_argument, std::string(what) + " is NULL");
}

const GroupEntry* entry_of(const df11_artifact* artifact, size_t group) {
  if (artifact == nullptr || group >= artifact->artifact.groups().size()) return nullptr;
  return &artifact->artifact.groups()[group];
}
Result<const GroupEntry*> checked_entry(const df11_artifact* artifact, size_t group) {
  const GroupEntry* const entry = entry_of(artifact, group);
  if (entry == nullptr) return fail(ErrorCode::invalid_argument, "no such group");
  return entry;
}

}  // namespace

extern "C" {

int df11_api_version(void) {
  return DF11_API_VERSION;
}
const char* df11_version(void) {
  static const std::string version(kVersion);
  return version.c_str();
}

const char* df11_status_name(df11_status status) {
  if (status == DF11_OK) return "ok";
  if (status == DF11_OUT_OF_MEMORY) return "out_of_memory";
  if (status == DF11_INTERNAL_ERROR) return "internal_error";
  if (status < DF11_IO_ERROR || status > DF11_CANCELLED) return "unknown";
  return error_code_name(static_cast<ErrorCode>(status)).data();  // of string literals
}
const char* df11_last_error(void) {
  return last_error().c_str();
}

df11_status df11_open_artifact(const char* directory, df11_artifact** artifact) {
  return guarded([&]() -> Result<void> {
    if (directory == nullptr || artifact == nullptr) return missing("an argument");
    DF11_ASSIGN(Artifact opened, Artifact::open(directory));
    *artifact = new df11_artifact{std::move(opened)};
    return {};
  });
}
void df11_close_artifact(df11_artifact* artifact) {
  delete artifact;
}
size_t df11_n_groups(const df11_artifact* artifact) {
  return artifact == nullptr ? 0 : artifact->artifact.groups().size();
}
const char* df11_group_module(const df11_artifact* artifact, size_t group) {
  const GroupEntry* const entry = entry_of(artifact, group);
  return entry == nullptr ? nullptr : entry->module.c_str();
}
uint64_t df11_group_elements(const df11_artifact* artifact, size_t group) {
  const GroupEntry* const entry = entry_of(artifact, group);
  return entry == nullptr ? 0 : entry->n_elements();
}
size_t df11_group_members(const df11_artifact* artifact, size_t group) {
  const GroupEntry* const entry = entry_of(artifact, group);
  return entry == nullptr ? 0 : entry->members.size();
}
const char* df11_member_name(const df11_artifact* artifact, size_t group, size_t member) {
  const GroupEntry* const entry = entry_of(artifact, group);
  if (entry == nullptr || member >= entry->members.size()) return nullptr;
  return entry->members[member].c_str();
}
df11_status df11_member_elements(const df11_artifact* artifact, size_t group, uint64_t* elements) {
  return guarded([&]() -> Result<void> {
    if (elements == nullptr) return missing("elements");
    DF11_ASSIGN(const GroupEntry* const entry, checked_entry(artifact, group));
    DF11_ASSIGN(const Group loaded, artifact->artifact.load_group(*entry));
    std::copy(loaded.member_elements.begin(), loaded.member_elements.end(), elements);
    return {};
  });
}
df11_status df11_load_group(const df11_artifact* artifact, size_t group, df11_group** loaded) {
  return guarded([&]() -> Result<void> {
    if (loaded == nullptr) return missing("loaded");
    DF11_ASSIGN(const GroupEntry* const entry, checked_entry(artifact, group));
    DF11_ASSIGN(HostGroup host, HostGroup::load(artifact->artifact, *entry));
    *loaded = new df11_group{std::move(host)};
    return {};
  });
}

df11_status df11_make_group(const df11_group_tensors* tensors, df11_group** group) {
  return guarded([&]() -> Result<void> {
    if (tensors == nullptr || group == nullptr) return missing("an argument");
    const df11_group_tensors& t = *tensors;
    if (t.size != sizeof t) return fail(ErrorCode::invalid_argument, "tensors->size is not set");
    if (t.luts == nullptr || t.encoded_exponent == nullptr || t.sign_mantissa == nullptr ||
        t.gaps == nullptr || t.output_positions == nullptr) {
      return missing("a tensor");
    }
    DF11_ASSIGN(HostGroup host, HostGroup::make({{t.luts, t.luts_bytes},
                                                 {t.encoded_exponent, t.encoded_exponent_bytes},
                                                 {t.sign_mantissa, t.sign_mantissa_bytes},
                                                 {t.gaps, t.gaps_bytes},
                                                 {t.output_positions, t.output_positions_bytes}}));
    *group = new df11_group{std::move(host)};
    return {};
  });
}
void df11_free_group(df11_group* group) {
  delete group;
}
uint64_t df11_n_elements(const df11_group* group) {
  return group == nullptr ? 0 : group->group.n_elements();
}
df11_status df11_decode_cpu(const df11_group* group, uint16_t* words, int n_threads) {
  return guarded([&]() -> Result<void> {
    if (group == nullptr || words == nullptr) return missing("an argument");
    if (n_threads < 0 || n_threads > 4096)
      return fail(ErrorCode::invalid_argument, "n_threads is not 0 to 4096");
    return group->group.decode(*make_cpu_decoder(), Executor(n_threads), words);
  });
}

df11_status df11_cuda_available(void) {
  return guarded([] { return cuda::require_device(); });
}
int df11_cuda_devices(void) {
  return cuda::n_devices();
}
df11_status df11_prepare_cuda(const df11_group* group, int device, void* stream,
                              df11_cuda_group** prepared) {
  return guarded([&]() -> Result<void> {
    if (group == nullptr || prepared == nullptr) return missing("an argument");
    DF11_ASSIGN(
        cuda::PreparedGroup uploaded,
        cuda::PreparedGroup::upload(group->group, device, static_cast<cuda::Stream>(stream)));
    *prepared = new df11_cuda_group{std::move(uploaded)};
    return {};
  });
}
void df11_free_cuda_group(df11_cuda_group* prepared) {
  delete prepared;
}
uint64_t df11_cuda_n_elements(const df11_cuda_group* prepared) {
  return prepared == nullptr ? 0 : prepared->group.n_elements();
}
uint64_t df11_cuda_device_bytes(const df11_cuda_group* prepared) {
  return prepared == nullptr ? 0 : prepared->group.device_bytes();
}
df11_status df11_decode_cuda(const df11_cuda_group* const* groups, uint16_t* const* words, size_t n,
                             uint32_t* device_status, void* stream) {
  return guarded([&]() -> Result<void> {
    if (n != 0 && (groups == nullptr || words == nullptr)) return missing("an argument");
    // Pieces of one launch: no allocation.
    cuda::DecodeTarget targets[cuda::kMaxLaunchGroups];
    for (size_t begin = 0; begin < n; begin += cuda::kMaxLaunchGroups) {
      const size_t count = std::min<size_t>(cuda::kMaxLaunchGroups, n - begin);
      for (size_t i = 0; i < count; ++i) {
        if (groups[begin + i] == nullptr) return missing("a group");
        targets[i] = {&groups[begin + i]->group, words[begin + i]};
      }
      DF11_TRY(cuda::decode(std::span(targets).first(count), device_status,
                            static_cast<cuda::Stream>(stream)));
    }
    return {};
  });
}

}  // extern "C"
