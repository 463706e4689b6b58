// The output directory while it is being written: complete or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/error.h"
#include "format/file.h"

namespace df11 {

inline constexpr std::string_view kPartialSuffix = ".df11-partial";

// Succeeds when the existing directory may be replaced with --force.
using ReplaceRule = std::function<Result<void>(const std::filesystem::path& directory)>;

// Errors: invalid_argument when one directory lies in the other; already_exists when `output`
// exists and `force` is false or it is no directory; those of `may_replace`.
Result<void> check_output(const std::filesystem::path& input, const std::filesystem::path& output,
                          bool force, const ReplaceRule& may_replace);

// Where `output` is written to: "<output>.df11-partial".
std::filesystem::path partial_path(const std::filesystem::path& output);

// partial_path(), locked against other runs. Removed again by the destructor unless it was
// published or is to be kept.
class PartialOutput {
 public:
  // With `resume`, what an interrupted run left stays; otherwise it is removed.
  // Errors: already_exists when another run holds it; I/O errors.
  static Result<PartialOutput> create(const std::filesystem::path& output, bool replace,
                                      bool resume);
  PartialOutput(PartialOutput&& other) noexcept;
  PartialOutput& operator=(PartialOutput&&) = delete;
  ~PartialOutput();

  const std::filesystem::path& path() const { return path_; }

  // Removes all but these regular files, which are relative paths, and the directories they need.
  Result<void> remove_others(const std::set<std::string>& files) const;

  // The destructor leaves the directory as it is, for a run that resumes.
  void keep() { kept_ = true; }

  // Syncs the directories and gives the output its name; with `replace`, in exchange for the
  // directory that has it now. already_exists when something else has come by that name meanwhile.
  Result<void> publish();

 private:
  PartialOutput(std::filesystem::path path, std::filesystem::path target, bool replace,
                std::vector<std::filesystem::path> new_parents, DirectoryLock lock);

  std::filesystem::path path_, target_;
  bool replace_, kept_ = false;
  std::vector<std::filesystem::path> new_parents_;
  DirectoryLock lock_;
};

}  // namespace df11
