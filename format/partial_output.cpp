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

// Whether something has the name `output`, which then may be replaced.
Result<bool> replaces(const fs::path& output, const ReplaceRule& may_replace) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(output, error);
  if (!fs::exists(status)) return false;
  const auto refuse = [&](std::string message) {
    return fail(Error{ErrorCode::already_exists, std::move(message), output.string(), {}, {}});
  };
  if (!may_replace) return refuse("the output exists (see --force)");
  if (!fs::is_directory(status))
    return refuse("--force replaces directories only, and this is none");
  DF11_TRY(may_replace(output));
  return true;
}

}  // namespace

Result<void> check_output(const fs::path& input, const fs::path& output,
                          const ReplaceRule& may_replace) {
  if (output.empty()) return fail(ErrorCode::invalid_argument, "the output path is empty");
  std::error_code error;
  const fs::path real_input = fs::weakly_canonical(input, error);
  if (error) return fail(system_error(error.value(), "cannot resolve", input.string()));
  const fs::path real_output = fs::weakly_canonical(output, error);
  if (error) return fail(system_error(error.value(), "cannot resolve", output.string()));
  if (lies_within(real_output, real_input) || lies_within(real_input, real_output)) {
    return fail(Error{ErrorCode::invalid_argument,
                      "input and output directory must not contain each other",
                      output.string(),
                      {},
                      {}});
  }
  DF11_TRY(replaces(output, may_replace));
  return {};
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

Result<PartialOutput> PartialOutput::create(const fs::path& output, ReplaceRule may_replace,
                                            bool resume) {
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
  PartialOutput partial(std::move(path), std::move(target), std::move(may_replace),
                        std::move(new_parents), std::move(*lock));
  if (resume) {
    partial.keep();
    return partial;
  }
  if (Result<void> emptied = partial.remove_others({}); !emptied) return fail(emptied.error());
  return partial;
}

PartialOutput::PartialOutput(fs::path path, fs::path target, ReplaceRule may_replace,
                             std::vector<fs::path> new_parents, DirectoryLock lock)
    : path_(std::move(path)),
      target_(std::move(target)),
      may_replace_(std::move(may_replace)),
      new_parents_(std::move(new_parents)),
      lock_(std::move(lock)) {}

PartialOutput::PartialOutput(PartialOutput&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      target_(std::move(other.target_)),
      may_replace_(std::move(other.may_replace_)),
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
  DF11_ASSIGN(const std::vector<fs::directory_entry> entries, list_directory(directory));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = prefix + entry.path().filename().string();
    std::error_code ignored;
    const fs::file_status status = entry.symlink_status(ignored);
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

namespace {
Result<void> sync_directories(const fs::path& directory) {
  DF11_ASSIGN(const std::vector<fs::directory_entry> entries, list_directory(directory));
  for (const fs::directory_entry& entry : entries) {
    std::error_code ignored;
    if (fs::is_directory(entry.symlink_status(ignored))) DF11_TRY(sync_directories(entry.path()));
  }
  return sync_directory(directory);
}
}  // namespace

Result<void> PartialOutput::take_name() {
  DF11_ASSIGN(const bool exists, replaces(target_, may_replace_));
  if (exists) {
    DF11_ASSIGN(path_, replace_path(path_, target_));  // the destructor removes it
  } else {
    DF11_TRY(rename_new(path_, target_));
    path_.clear();
  }
  kept_ = false;
  return {};
}

Result<void> PartialOutput::publish() {
  DF11_TRY(sync_directories(path_));
  if (Result<void> named = take_name(); !named) {
    keep();
    Error error = std::move(named).error();
    error.message += "; the output is complete, as " + path_.string();
    return fail(std::move(error));
  }
  return sync_parent(target_);
}

}  // namespace df11
