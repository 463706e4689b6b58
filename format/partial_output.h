// The output directory while it is being written: complete or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/directory.h"
#include "format/error.h"

namespace df11 {

inline constexpr std::string_view kPartialSuffix = ".df11-partial";

// Succeeds when the existing directory may be replaced; null: none may.
using ReplaceRule = std::function<Result<void>(const std::filesystem::path& directory)>;

// Errors: invalid_argument when one directory lies in the other; already_exists when `output`
// exists and there is no rule, or it is no directory; those of `may_replace`.
Result<void> check_output(const std::filesystem::path& input, const std::filesystem::path& output,
                          const ReplaceRule& may_replace);

// Where `output` is written to: "<output>.df11-partial".
std::filesystem::path partial_path(const std::filesystem::path& output);

// partial_path(), locked against other runs. Removed again by the destructor unless it was
// published or is to be kept.
class PartialOutput {
 public:
  // With `resume`, what an interrupted run left stays, also if this one fails; otherwise it is
  // removed.
  // Errors: already_exists when another run holds it; I/O errors.
  static Result<PartialOutput> create(const std::filesystem::path& output, ReplaceRule may_replace,
                                      bool resume);
  PartialOutput(PartialOutput&& other) noexcept;
  PartialOutput& operator=(PartialOutput&&) = delete;
  ~PartialOutput();

  const std::filesystem::path& path() const { return path_; }

  // Removes all but these regular files, which are relative paths, and the directories they need.
  Result<void> remove_others(const std::set<std::string>& files) const;

  // The destructor leaves the directory as it is, for a run that resumes.
  void keep() { kept_ = true; }

  // Syncs the directories and gives the output its name, in exchange for what has it now if that
  // may be replaced. If it cannot have the name, it is kept under its own, and the error says so.
  // Errors: already_exists and those of the rule, since something may have come by that name while
  // the output was written; I/O errors.
  Result<void> publish();

 private:
  PartialOutput(std::filesystem::path path, std::filesystem::path target, ReplaceRule may_replace,
                std::vector<std::filesystem::path> new_parents, DirectoryLock lock);
  Result<void> take_name();

  std::filesystem::path path_, target_;
  ReplaceRule may_replace_;
  bool kept_ = false;
  std::vector<std::filesystem::path> new_parents_;
  DirectoryLock lock_;
};

}  // namespace df11
