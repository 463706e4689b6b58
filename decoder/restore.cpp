#include "decoder/restore.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "format/checkpoint.h"
#include "format/late_sync.h"
#include "format/partial_output.h"

namespace df11 {

namespace fs = std::filesystem;

namespace {

// Bounds on memory, over all files: a decoded run of trained weights and its stream take 3 MB.
constexpr size_t kMaxStreams = 16;
constexpr size_t kMaxRunsInFlight = 128;

// The file of the artifact that `file` is a copy of; of the same size.
Result<File> open_copied(const RestoredFile& file, const Artifact& artifact) {
  Result<File> from = File::open_read(artifact.directory() / file.copied_from);
  if (!from && from.error().code == ErrorCode::not_found && file.sha256) {
    return fail(
        Error{ErrorCode::damaged, "the artifact lacks this file", from.error().file, {}, {}});
  }
  if (!from) return from;
  if (from->size_bytes() != file.size_bytes) {
    return fail(
        Error{file.sha256 ? ErrorCode::damaged : ErrorCode::source_changed,
              std::to_string(from->size_bytes()) + " bytes, not " + std::to_string(file.size_bytes),
              from->path(),
              {},
              {}});
  }
  return from;
}

Error wrong_size(const RestoredTensor& tensor, uint64_t size_bytes) {
  return {ErrorCode::damaged,
          std::to_string(size_bytes) + " bytes in the artifact, " +
              std::to_string(tensor.info.size_bytes()) + " in the source",
          {},
          tensor.info.name,
          {}};
}

// That the artifact has what fills the file: before disk space is reserved by its word.
Result<void> check_size(const RestoredFile& file, const Artifact& artifact) {
  if (!file.copied_from.empty()) {
    DF11_TRY(open_copied(file, artifact));
    return {};
  }
  for (const RestoredTensor& tensor : file.tensors) {
    const uint64_t max_bytes = tensor.stored.max_bytes();
    if (tensor.info.size_bytes() > max_bytes)
      return fail(wrong_size(tensor, max_bytes).in_file(file.path));
  }
  return {};
}

Result<void> stream_copy(const RestoredFile& file, const Artifact& artifact,
                         const Executor& executor, Sha256Hasher& hasher,
                         const std::function<Result<void>(ByteSpan, uint64_t)>& write) {
  DF11_ASSIGN(const File from, open_copied(file, artifact));
  return from.for_each_chunk(0, file.size_bytes,
                             [&](ByteSpan chunk, uint64_t offset) -> Result<void> {
                               hasher.update(chunk);
                               DF11_TRY(write(chunk, offset));
                               return executor.check_cancelled();
                             });
}

Result<void> stream_tensor(const RestoredTensor& tensor, uint64_t begin_bytes,
                           const Artifact& artifact, const Decoder& decoder,
                           const Executor& executor, size_t max_in_flight, Pool<PieceBuffers>& pool,
                           Sha256Hasher& hasher,
                           const std::function<Result<void>(ByteSpan, uint64_t)>& write) {
  DF11_ASSIGN(const TensorReader reader, TensorReader::open(artifact, tensor.stored, decoder));
  if (reader.size_bytes() != tensor.info.size_bytes())
    return fail(wrong_size(tensor, reader.size_bytes()));
  std::vector<std::optional<Pool<PieceBuffers>::Lease>> held(reader.n_pieces());
  std::vector<ByteSpan> pieces(reader.n_pieces());
  return executor.for_each_ordered(
      reader.n_pieces(), max_in_flight,
      [&](size_t i) -> Result<void> {
        held[i].emplace(pool.take());
        DF11_ASSIGN(const TensorPiece piece, reader.read(i, **held[i]));
        pieces[i] = piece.bytes;
        return write(piece.bytes, begin_bytes + piece.offset_bytes);
      },
      [&](size_t i) -> Result<void> {
        hasher.update(pieces[i]);
        held[i].reset();
        return {};
      });
}

class Run {
 public:
  Run(const RestorePlan& plan, const Artifact& artifact, const fs::path& directory,
      const RestoreOptions& options, const Decoder& decoder, const Executor& executor,
      Progress& progress)
      : plan_(plan),
        artifact_(artifact),
        directory_(directory),
        options_(options),
        decoder_(decoder),
        executor_(executor),
        progress_(progress),
        digests_(plan.files.size()) {}

  Result<RestoreSummary> execute() {
    progress_.total_bytes = plan_.total_bytes() * (options_.verify ? 2 : 1);
    DF11_TRY(for_each_file([this](size_t i) { return write_file(i); }));
    DF11_TRY(written_.finish(executor_));
    if (options_.verify) DF11_TRY(for_each_file([this](size_t i) { return read_back(i); }));
    RestoreSummary summary;
    summary.n_reused = n_reused_;
    for (size_t i = 0; i < plan_.files.size(); ++i) {
      summary.files.push_back({plan_.files[i].path, plan_.files[i].size_bytes, digests_[i]});
      summary.n_tensors += plan_.files[i].tensors.size();
    }
    summary.omitted_files = plan_.omitted_files;
    summary.flat_tensors = plan_.flat_tensors;
    return summary;
  }

  // Whether a run that was cancelled has something to go on from: a finished file with a hash.
  bool can_be_resumed() const { return n_written_ + n_reused_ != 0 && !options_.tensors_only; }

 private:
  size_t n_streams() const {
    return std::min({plan_.files.size(), static_cast<size_t>(executor_.n_threads()), kMaxStreams});
  }

  // In order, a few at a time.
  Result<void> for_each_file(const std::function<Result<void>(size_t)>& work) {
    std::atomic<size_t> next{0};
    return executor_.for_each(n_streams(), [&](size_t) -> Result<void> {
      for (size_t i = next++; i < plan_.files.size(); i = next++) {
        Result<void> done = work(i);
        if (done) continue;
        next = plan_.files.size();  // the other streams start no file any more
        return done;
      }
      return {};
    });
  }

  // Whether an interrupted run has written the file; if not, nothing is left in its place.
  Result<bool> find_finished(size_t i, const fs::path& path) {
    const RestoredFile& restored = plan_.files[i];
    if (restored.sha256) {
      DF11_ASSIGN(const bool intact,
                  is_intact(path, restored.size_bytes, *restored.sha256, executor_));
      if (intact) {
        digests_[i] = *restored.sha256;
        progress_.add(restored.size_bytes);
        return true;
      }
    }
    DF11_TRY(remove_tree(path));
    return false;
  }

  Result<void> write_file(size_t i) {
    const RestoredFile& restored = plan_.files[i];
    const fs::path path = directory_ / restored.path;
    if (options_.resume) {
      DF11_ASSIGN(const bool finished, find_finished(i, path));
      n_reused_ += finished;
      if (finished) return {};
    }
    DF11_TRY(check_size(restored, artifact_));
    DF11_TRY(make_directories(path.parent_path()));
    DF11_ASSIGN(File file, File::create(path));
    DF11_TRY(file.preallocate(restored.size_bytes));
    const size_t max_in_flight = std::clamp<size_t>(kMaxRunsInFlight / n_streams(), 2,
                                                    static_cast<size_t>(executor_.n_threads()) + 1);
    DF11_ASSIGN(digests_[i], stream_file(restored, artifact_, decoder_, executor_, max_in_flight,
                                         [&](ByteSpan bytes, uint64_t offset) {
                                           progress_.add(bytes.size());
                                           return file.write_exact(bytes, offset);
                                         }));
    if (restored.sha256) {
      DF11_TRY(check_digest(restored.path, digests_[i], *restored.sha256,
                            "the artifact is damaged: df11-verify says where"));
    }
    ++n_written_;
    return written_.add(std::move(file));
  }

  Result<void> read_back(size_t i) {
    const RestoredFile& restored = plan_.files[i];
    DF11_ASSIGN(const File file, File::open_read(directory_ / restored.path));
    file.forget_cached();
    DF11_ASSIGN(const Sha256 digest, sha256_of_file(file, file.size_bytes(), executor_, progress_));
    if (digest == digests_[i]) return {};
    return fail(Error{ErrorCode::io_error,
                      "what was read back is not what was written: SHA-256 is " + digest.hex() +
                          ", not " + digests_[i].hex(),
                      restored.path,
                      {},
                      {}});
  }

  static Result<void> check_digest(const std::string& path, const Sha256& digest,
                                   const Sha256& recorded, std::string_view hint) {
    if (digest == recorded) return {};
    return fail(Error{ErrorCode::damaged,
                      "its SHA-256 would be " + digest.hex() + ", the manifest has " +
                          recorded.hex() + "; " + std::string(hint),
                      path,
                      {},
                      {}});
  }

  const RestorePlan& plan_;
  const Artifact& artifact_;
  const fs::path& directory_;
  const RestoreOptions& options_;
  const Decoder& decoder_;
  const Executor& executor_;
  Progress& progress_;
  std::vector<Sha256> digests_;
  LateSync written_;
  std::atomic<uint64_t> n_written_{0}, n_reused_{0};
};

// What --force may replace: nothing is lost that the restored directory does not have.
Result<void> holds_only(const std::set<std::string>& paths, const fs::path& output) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(output, error), end; it != end; it.increment(error)) {
    const std::string path = it->path().lexically_relative(output).generic_string();
    if (fs::is_directory(it->symlink_status(error)) || paths.contains(path)) continue;
    return fail(Error{ErrorCode::already_exists,
                      "--force replaces a directory of the same files only, and this has " + path,
                      output.string(),
                      {},
                      {}});
  }
  if (error) return fail(system_error(error.value(), "cannot list", output.string()));
  return {};
}

}  // namespace

uint64_t RestoreSummary::total_bytes() const {
  uint64_t bytes = 0;
  for (const ManifestFile& file : files) bytes += file.size_bytes;
  return bytes;
}

Result<Sha256> stream_file(const RestoredFile& file, const Artifact& artifact,
                           const Decoder& decoder, const Executor& executor, size_t max_in_flight,
                           const std::function<Result<void>(ByteSpan, uint64_t)>& write) {
  Sha256Hasher hasher;
  if (!file.copied_from.empty()) {
    DF11_TRY(stream_copy(file, artifact, executor, hasher, write));
    return hasher.digest();
  }
  DF11_TRY(executor.check_cancelled());
  DF11_TRY(write(as_bytes(file.head), 0));
  hasher.update(as_bytes(file.head));
  Pool<PieceBuffers> pool;
  for (const RestoredTensor& tensor : file.tensors) {
    Result<void> done = stream_tensor(tensor, file.head.size() + tensor.info.begin_bytes, artifact,
                                      decoder, executor, max_in_flight, pool, hasher, write);
    if (!done) return fail(std::move(done).error().in_tensor(tensor.info.name).in_file(file.path));
  }
  return hasher.digest();
}

Result<RestoreSummary> restore(const fs::path& directory, const fs::path& output,
                               const RestoreOptions& options, const Decoder& decoder,
                               const Executor& executor, Progress& progress) {
  const auto refuse = [&](ErrorCode code, std::string message) {
    return fail(Error{code, std::move(message), directory.string(), {}, {}});
  };
  std::error_code status_error;
  if (!fs::is_directory(directory, status_error))
    return refuse(ErrorCode::not_found, "no such directory");
  DF11_ASSIGN(const bool is_df11, is_artifact(directory));
  if (!is_df11) {
    return refuse(ErrorCode::unsupported,
                  "this is no DF11 artifact: it has neither df11_manifest.json nor a config.json "
                  "with dfloat11_config");
  }
  DF11_ASSIGN(const Artifact artifact, Artifact::open(directory));
  if (!artifact.manifest() && !options.tensors_only) {
    return refuse(ErrorCode::invalid_argument,
                  "it has no df11_manifest.json to say what the source's files were; "
                  "--tensors-only writes its tensors to new .safetensors files");
  }
  DF11_ASSIGN(const RestorePlan plan,
              options.tensors_only ? plan_tensors_only(artifact) : plan_restore(artifact));
  std::set<std::string> paths;
  for (const RestoredFile& file : plan.files) paths.insert(file.path);
  ReplaceRule may_replace;
  if (options.force)
    may_replace = [&](const fs::path& existing) { return holds_only(paths, existing); };
  DF11_TRY(check_output(directory, output, may_replace));
  DF11_ASSIGN(PartialOutput partial, PartialOutput::create(output, may_replace, options.resume));
  DF11_TRY(partial.remove_others(paths));
  Run run(plan, artifact, partial.path(), options, decoder, executor, progress);
  Result<RestoreSummary> summary = run.execute();
  if (!summary) {
    if (summary.error().code == ErrorCode::cancelled && run.can_be_resumed()) partial.keep();
    return summary;
  }
  for (const Shard& shard : artifact.shards().shards()) DF11_TRY(shard.file.check_unchanged());
  DF11_TRY(partial.publish());
  return summary;
}

}  // namespace df11
