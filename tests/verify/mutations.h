// Seeded changes of a directory on disk, made in place and taken back: thousands of damaged
// artifacts for the price of one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "directories/builders.h"
#include "support/random.h"

namespace df11::test {

// Where the bytes of one tensor are.
struct TensorPlace {
  std::string file, name, leaf;  // leaf: what follows the name's last dot
  Dtype dtype;
  uint64_t offset_bytes, n_bytes;
};

enum class MutationKind : uint8_t {
  kBit,
  kByte,
  kBurst,     // up to 64 neighbouring bytes
  kTruncate,  // the file
  kExtend,    // the file
  kSwapFiles,
  kSwapTensors,  // the data of two tensors of equal size
  kTableEntry,   // two entries of luts exchanged
  kTableLength,  // another length for an exponent that has a code
  kPosition,     // one of output_positions, or two exchanged
  kGap,          // one of gaps
  kZeroSign,     // +0.0 for -0.0 or back, in a group or verbatim: equal as floats
  kNanPayload,   // of a NaN in a BF16 or F32 tensor: never equal as floats
};
inline constexpr int kMutationKinds = 13;

class MutableDirectory {
 public:
  // `path` must not be changed by anyone else. Remembers all its bytes.
  explicit MutableDirectory(fs::path path);

  // Changes something, of `kind` if the directory has it, and says what; the bytes on disk differ
  // from the original afterwards. With `data_only`, only where every bit counts without a manifest:
  // in the bytes of tensors, but for slots of tables and padding.
  std::string mutate(MutationKind kind, Random& random, bool data_only);
  void undo();
  bool is_original() const { return tree_of(path_) == files_; }

 private:
  struct Change {
    std::string file;
    uint64_t offset_bytes;
    std::string bytes;
    std::optional<uint64_t> new_size_bytes = {};
  };

  bool make(MutationKind kind, Random& random, bool data_only);
  bool put(const std::string& file, uint64_t offset_bytes, std::string bytes);
  bool change_word(const TensorPlace& tensor, uint64_t index, uint8_t flip, uint64_t byte_in_word,
                   uint64_t word_bytes);
  bool flip_zero(Random& random);
  bool flip_nan(Random& random);
  std::string bytes_of(const TensorPlace& tensor) const;
  const TensorPlace* any_tensor(Random& random, std::string_view leaf) const;
  // A range of `n_bytes` at most, in tensors' data or anywhere.
  std::optional<TensorPlace> any_range(Random& random, uint64_t n_bytes, bool data_only) const;
  void write(const Change& change) const;

  fs::path path_;
  std::map<std::string, std::string> files_;
  std::vector<TensorPlace> tensors_;
  std::vector<Change> changes_;
  std::optional<std::pair<std::string, std::string>> swapped_files_;
};

}  // namespace df11::test
