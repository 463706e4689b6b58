#include "format/output_positions.h"

#include "format/df11_layout.h"

namespace df11 {

namespace {
auto malformed(std::string message) {
  return fail(ErrorCode::malformed_group, "output_positions " + std::move(message));
}
}  // namespace

Result<std::vector<uint32_t>> parse_output_positions(ByteSpan bytes, uint64_t n_elements,
                                                     uint64_t n_code_bytes) {
  if (bytes.size() < 4) return malformed("has another size");
  std::vector<uint32_t> positions(bytes.size() / 4);
  std::memcpy(positions.data(), bytes.data(), positions.size() * 4);
  // Spec section 10: what upstream leaves out is the position of a last block without weights, N.
  const uint64_t n_positions = n_output_positions(n_code_bytes);
  if (positions.size() + 1 == n_positions && !positions.empty() && positions.back() == n_elements) {
    positions.push_back(static_cast<uint32_t>(n_elements));
  }
  if (bytes.size() % 4 != 0 || positions.size() != n_positions || n_positions < 2)
    return malformed("has another size");
  if (positions.front() != 0 || positions.back() != n_elements)
    return malformed("do not run from 0 to the number of weights");
  for (size_t i = 0; i + 1 < positions.size(); ++i) {
    const uint32_t begin = positions[i], end = positions[i + 1];
    const bool may_be_empty = i + 2 == positions.size() && i != 0;
    if (begin > end || (begin == end && !may_be_empty) || end - begin > kBlockBits) {
      return malformed("of block " + std::to_string(i) + ", " + std::to_string(begin) + " and " +
                       std::to_string(end) + ", do not delimit a block");
    }
  }
  return positions;
}

}  // namespace df11
