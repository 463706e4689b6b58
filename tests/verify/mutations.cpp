#include "mutations.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "format/df11_layout.h"

namespace df11::test {

namespace {

bool every_bit_counts(const TensorPlace& tensor) {
  return tensor.leaf != kLutsName && tensor.leaf != kSplitPositionsName;
}

std::string random_bytes(Random& random, uint64_t n) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

const std::string& any_file(Random& random, const std::map<std::string, std::string>& files) {
  return std::next(files.begin(), static_cast<ptrdiff_t>(random.below(files.size())))->first;
}

}  // namespace

MutableDirectory::MutableDirectory(fs::path path) : path_(std::move(path)), files_(tree_of(path_)) {
  for (const auto& [name, bytes] : files_) {
    if (!name.ends_with(kSafetensorsSuffix)) continue;
    const uint64_t json_bytes = load_le64(as_bytes(bytes).data());
    const SafetensorsHeader header = *SafetensorsHeader::parse(
        std::string_view(bytes).substr(8, json_bytes), bytes.size() - 8 - json_bytes);
    for (const TensorInfo& info : header.tensors()) {
      if (info.size_bytes() == 0) continue;
      tensors_.push_back({name, info.name, info.name.substr(info.name.rfind('.') + 1), info.dtype,
                          header.data_offset_bytes() + info.begin_bytes, info.size_bytes()});
    }
  }
}

std::string MutableDirectory::bytes_of(const TensorPlace& tensor) const {
  return files_.at(tensor.file).substr(tensor.offset_bytes, tensor.n_bytes);
}

const TensorPlace* MutableDirectory::any_tensor(Random& random, std::string_view leaf) const {
  std::vector<const TensorPlace*> found;
  for (const TensorPlace& tensor : tensors_)
    if (tensor.leaf == leaf) found.push_back(&tensor);
  return found.empty() ? nullptr : found[random.below(found.size())];
}

std::optional<TensorPlace> MutableDirectory::any_range(Random& random, uint64_t n_bytes,
                                                       bool data_only) const {
  TensorPlace place;
  if (data_only) {
    place = tensors_[random.below(tensors_.size())];
    if (!every_bit_counts(place)) return std::nullopt;
    if (place.leaf == kEncodedExponentName) --place.n_bytes;  // it may end in padding
  } else {
    place.file = any_file(random, files_);
    place.offset_bytes = 0;
    place.n_bytes = files_.at(place.file).size();
  }
  if (place.n_bytes == 0) return std::nullopt;
  const uint64_t at = random.below(place.n_bytes);
  place.offset_bytes += at;
  place.n_bytes = std::min(n_bytes, place.n_bytes - at);
  return place;
}

// False when nothing would change.
bool MutableDirectory::put(const std::string& file, uint64_t offset_bytes, std::string bytes) {
  if (files_.at(file).compare(offset_bytes, bytes.size(), bytes) == 0) return false;
  changes_.push_back({file, offset_bytes, std::move(bytes)});
  return true;
}

bool MutableDirectory::change_word(const TensorPlace& tensor, uint64_t index, uint8_t flip,
                                   uint64_t byte_in_word, uint64_t word_bytes) {
  const uint64_t at = tensor.offset_bytes + index * word_bytes + byte_in_word;
  return put(tensor.file, at, std::string(1, static_cast<char>(files_.at(tensor.file)[at] ^ flip)));
}

// In sign_mantissa, the zeros are among the bytes 0x00 and 0x80; the others are powers of two,
// whose sign counts as much.
bool MutableDirectory::flip_zero(Random& random) {
  const TensorPlace& tensor = tensors_[random.below(tensors_.size())];
  const bool split = tensor.leaf == kSignMantissaName;
  if (!split && tensor.dtype != Dtype::kBF16) return false;
  const std::string bytes = bytes_of(tensor);
  const uint64_t step = split ? 1 : 2, n = bytes.size() / step, first = random.below(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t at = (first + i) % n;
    const uint8_t low = static_cast<uint8_t>(bytes[at * step]);
    const uint8_t high = static_cast<uint8_t>(bytes[at * step + step - 1]);
    if ((high & 0x7f) == 0 && (split || low == 0))
      return change_word(tensor, at, 0x80, step - 1, step);
  }
  return false;
}

bool MutableDirectory::flip_nan(Random& random) {
  const TensorPlace& tensor = tensors_[random.below(tensors_.size())];
  if (tensor.dtype != Dtype::kBF16 && tensor.dtype != Dtype::kF32) return false;
  const std::string bytes = bytes_of(tensor);
  const uint64_t size = tensor.dtype == Dtype::kBF16 ? 2 : 4;
  const uint64_t n = bytes.size() / size, first = random.below(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t at = (first + i) % n;
    uint32_t word = 0;  // as the upper half of a float, or the whole of it
    std::memcpy(reinterpret_cast<char*>(&word) + (4 - size), &bytes[at * size], size);
    if (!std::isnan(std::bit_cast<float>(word))) continue;
    word ^= uint32_t{1} << (random.below(size == 2 ? 6 : 22) + (size == 2 ? 16 : 0));
    if (!std::isnan(std::bit_cast<float>(word))) continue;
    std::string changed(size, '\0');
    std::memcpy(changed.data(), reinterpret_cast<const char*>(&word) + (4 - size), size);
    return put(tensor.file, tensor.offset_bytes + at * size, changed);
  }
  return false;
}

bool MutableDirectory::make(MutationKind kind, Random& random, bool data_only) {
  switch (kind) {
    case MutationKind::kBit:
    case MutationKind::kByte:
    case MutationKind::kBurst: {
      const uint64_t n = kind == MutationKind::kBurst ? 2 + random.below(63) : 1;
      const std::optional<TensorPlace> range = any_range(random, n, data_only);
      if (!range) return false;
      std::string bytes = random_bytes(random, range->n_bytes);
      if (kind == MutationKind::kBit) {
        bytes[0] =
            static_cast<char>(files_.at(range->file)[range->offset_bytes] ^ 1 << random.below(8));
      }
      return put(range->file, range->offset_bytes, std::move(bytes));
    }
    case MutationKind::kTruncate:
    case MutationKind::kExtend: {
      const TensorPlace& tensor = tensors_[random.below(tensors_.size())];
      const std::string& file = data_only ? tensor.file : any_file(random, files_);
      const uint64_t size = files_.at(file).size();
      const uint64_t n = random.below(2) == 0 ? 1 + random.below(16) : 1 + random.below(size);
      if (kind == MutationKind::kTruncate)
        changes_.push_back({file, 0, "", size - std::min(n, size)});
      else
        changes_.push_back({file, size, random_bytes(random, n), size + n});
      return true;
    }
    case MutationKind::kSwapFiles: {
      const std::string& a = any_file(random, files_);
      const std::string& b = any_file(random, files_);
      const auto may = [&](const std::string& name) {
        return !data_only || name.ends_with(kSafetensorsSuffix);
      };
      if (files_.at(a) == files_.at(b) || !may(a) || !may(b)) return false;
      swapped_files_ = {a, b};
      return true;
    }
    case MutationKind::kSwapTensors: {
      const TensorPlace& a = tensors_[random.below(tensors_.size())];
      const TensorPlace& b = tensors_[random.below(tensors_.size())];
      if (a.n_bytes != b.n_bytes || (data_only && !(every_bit_counts(a) && every_bit_counts(b)))) {
        return false;
      }
      return put(a.file, a.offset_bytes, bytes_of(b)) && put(b.file, b.offset_bytes, bytes_of(a));
    }
    case MutationKind::kTableEntry: {
      const TensorPlace* luts = any_tensor(random, kLutsName);
      if (luts == nullptr || data_only) return false;  // no code may reach the entries
      std::string bytes = bytes_of(*luts);
      std::swap(bytes[random.below(bytes.size())], bytes[random.below(bytes.size())]);
      return put(luts->file, luts->offset_bytes, std::move(bytes));
    }
    case MutationKind::kTableLength: {
      const TensorPlace* luts = any_tensor(random, kLutsName);
      if (luts == nullptr) return false;
      const uint64_t at = luts->n_bytes - kLutRowBytes + random.below(kLutRowBytes);
      if (bytes_of(*luts)[at] == 0) return false;
      return put(luts->file, luts->offset_bytes + at,
                 std::string(1, static_cast<char>(random.below(34))));
    }
    case MutationKind::kPosition: {
      const TensorPlace* positions = any_tensor(random, kOutputPositionsName);
      if (positions == nullptr) return false;
      std::string bytes = bytes_of(*positions);
      const auto word = [&](uint64_t i) { return reinterpret_cast<uint8_t*>(&bytes[4 * i]); };
      const uint64_t n = bytes.size() / 4, a = random.below(n), b = random.below(n);
      const uint32_t before = load_le32(word(a));
      if (random.below(3) == 0) {
        store_le32(word(a), load_le32(word(b)));
        store_le32(word(b), before);
      } else {
        store_le32(word(a), static_cast<uint32_t>(before + random.below(5) - 2));
      }
      return put(positions->file, positions->offset_bytes, std::move(bytes));
    }
    case MutationKind::kGap: {
      const TensorPlace* gaps = any_tensor(random, kGapsName);
      if (gaps == nullptr) return false;
      return change_word(*gaps, random.below(gaps->n_bytes),
                         static_cast<uint8_t>(1 << random.below(8)), 0, 1);
    }
    case MutationKind::kZeroSign: return flip_zero(random);
    case MutationKind::kNanPayload: return flip_nan(random);
  }
  return false;
}

std::string MutableDirectory::mutate(MutationKind kind, Random& random, bool data_only) {
  for (int tries = 0; !make(kind, random, data_only); ++tries) {
    changes_.clear();
    if (tries == 10'000) throw std::runtime_error("nothing to mutate in this way");
  }
  if (swapped_files_) {
    const auto& [a, b] = *swapped_files_;
    fs::rename(path_ / a, path_ / "swapped");
    fs::rename(path_ / b, path_ / a);
    fs::rename(path_ / "swapped", path_ / b);
    return a + " and " + b + " exchanged";
  }
  std::string what = "kind " + std::to_string(static_cast<int>(kind));
  for (const Change& change : changes_) {
    write(change);
    what += ", " + change.file + " at " + std::to_string(change.offset_bytes) + ": " +
            std::to_string(change.bytes.size()) + " bytes";
  }
  return what;
}

void MutableDirectory::undo() {
  if (swapped_files_) {
    const auto& [a, b] = *swapped_files_;
    fs::rename(path_ / a, path_ / "swapped");
    fs::rename(path_ / b, path_ / a);
    fs::rename(path_ / "swapped", path_ / b);
    swapped_files_.reset();
  }
  for (const Change& change : changes_) {
    const std::string& original = files_.at(change.file);
    if (change.new_size_bytes) {
      const uint64_t kept = std::min<uint64_t>(*change.new_size_bytes, original.size());
      write({change.file, kept, original.substr(kept), original.size()});
    } else {
      write({change.file, change.offset_bytes,
             original.substr(change.offset_bytes, change.bytes.size())});
    }
  }
  changes_.clear();
}

void MutableDirectory::write(const Change& change) const {
  const int fd = ::open((path_ / change.file).c_str(), O_WRONLY | O_CLOEXEC);
  const ssize_t n = ::pwrite(fd, change.bytes.data(), change.bytes.size(),
                             static_cast<off_t>(change.offset_bytes));
  bool good = fd >= 0 && n == static_cast<ssize_t>(change.bytes.size());
  if (change.new_size_bytes)
    good &= ::ftruncate(fd, static_cast<off_t>(*change.new_size_bytes)) == 0;
  ::close(fd);
  if (!good) throw std::runtime_error("cannot write " + change.file);
}

}  // namespace df11::test
