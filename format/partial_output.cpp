#include "format/partial_output.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace df11 {

namespace fs = std::filesystem;

namespace {

bool lies_within(const fs::path& inner, const fs::path& outer) {
  const auto [outer_end, inner_at] =
      std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return outer_end == outer.end();
}

}  // namespace

Result<void> check_output(const fs::path& input, const fs::path& output, bool force,
                          const ReplaceRule& may_replace) {
  if (output.empty()) return fail(ErrorCode::invalid_argument, "the output path is empty");
  std::error_code error;
  const fs::path real_input = fs::weakly_canonical(input, error);
  if (error) return fail(system_error(error.value(), "cannot resolve", input.string()));
  const fs::path real_output = fs::weakly_canonical(output, error);
  if (error) return fail(system_error(error.value(), "cannot resolve", output.string()));
  const auto refuse = [&](ErrorCode code, std::string message) {
    return fail(Error{code, std::move(message), output.string(), {}, {}});
  };
  if (lies_within(real_output, real_input) || lies_within(real_input, real_output)) {
    return refuse(ErrorCode::invalid_argument,
                  "input and output directory must not contain each other");
  }
  if (!fs::exists(fs::symlink_status(output, error))) return {};
  if (!force) return refuse(ErrorCode::already_exists, "the output exists (see --force)");
  if (!fs::is_directory(fs::symlink_status(output, error)))
    return refuse(ErrorCode::already_exists, "--force replaces directories only, and this is none");
  return may_replace(output);
}

namespace {
void remove_if_empty(const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories) (void)::rmdir(directory.c_str());
}
}  // namespace

namespace {
// "out/" and "out" are one directory.
fs::path without_slash(const fs::path& output) {
  return output.has_filename() ? output : output.parent_path();
}
}  // namespace

fs::path partial_path(const fs::path& output) {
  fs::path path = without_slash(output);
  path += kPartialSuffix;
  return path;
}

Result<PartialOutput> PartialOutput::create(const fs::path& output, bool replace, bool resume) {
  fs::path target = without_slash(output);
  fs::path path = partial_path(output);
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    return fail(
        Error{ErrorCode::already_exists, "a symbolic link is in the way", path.string(), {}, {}});
  }
  // The parents that are made here, outermost last: they go again if nothing is published.
  std::vector<fs::path> new_parents;
  for (fs::path parent = path.parent_path(); !parent.empty() && !fs::exists(parent, error);
       parent = parent.parent_path()) {
    new_parents.push_back(parent);
  }
  const auto undo = [&](Error cause) {
    if (cause.code != ErrorCode::already_exists) (void)::rmdir(path.c_str());  // not another run's
    remove_if_empty(new_parents);
    return fail(std::move(cause));
  };
  if (Result<void> made = make_directories(path); !made) return undo(std::move(made).error());
  Result<DirectoryLock> lock = DirectoryLock::acquire(path);
  if (!lock) return undo(std::move(lock).error());
  PartialOutput partial(std::move(path), std::move(target), replace, std::move(new_parents),
                        std::move(*lock));
  if (resume) return partial;
  if (Result<void> emptied = partial.remove_others({}); !emptied) return fail(emptied.error());
  return partial;
}

PartialOutput::PartialOutput(fs::path path, fs::path target, bool replace,
                             std::vector<fs::path> new_parents, DirectoryLock lock)
    : path_(std::move(path)),
      target_(std::move(target)),
      replace_(replace),
      new_parents_(std::move(new_parents)),
      lock_(std::move(lock)) {}

PartialOutput::PartialOutput(PartialOutput&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      target_(std::move(other.target_)),
      replace_(other.replace_),
      kept_(other.kept_),
      new_parents_(std::move(other.new_parents_)),
      lock_(std::move(other.lock_)) {}

PartialOutput::~PartialOutput() {
  if (path_.empty() || kept_) return;
  (void)remove_tree(path_);
  remove_if_empty(new_parents_);
}

namespace {
Result<void> remove_all_but(const std::set<std::string>& files, const fs::path& directory,
                            const std::string& prefix) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;  // listed before any goes
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error))
    entries.push_back(entry);
  if (error) return fail(system_error(error.value(), "cannot list", directory.string()));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = prefix + entry.path().filename().string();
    const fs::file_status status = entry.symlink_status(error);
    if (fs::is_regular_file(status) && files.contains(name)) continue;
    const auto below = files.lower_bound(name + "/");
    if (fs::is_directory(status) && below != files.end() && below->starts_with(name + "/")) {
      DF11_TRY(remove_all_but(files, entry.path(), name + "/"));
    } else {
      DF11_TRY(remove_tree(entry.path()));
    }
  }
  return {};
}
}  // namespace

Result<void> PartialOutput::remove_others(const std::set<std::string>& files) const {
  return remove_all_but(files, path_, "");
}

Result<void> PartialOutput::publish() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_, error)) {
    if (entry.is_directory(error)) DF11_TRY(sync_directory(entry.path()));
  }
  if (error) return fail(system_error(error.value(), "cannot list", path_.string()));
  DF11_TRY(sync_directory(path_));
  // What is exchanged for the new output may go (check_output); the destructor removes it.
  if (replace_ && fs::exists(target_, error)) return exchange_paths(path_, target_);
  DF11_TRY(rename_durably(path_, target_));
  path_.clear();
  return {};
}

}  // namespace df11
