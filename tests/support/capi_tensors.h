// A group's tensors as the C interface takes them.
#pragma once

#include "compressor/group_encoder.h"
#include "decoder/capi/df11.h"

namespace df11::test {

// Points into `g`.
inline df11_group_tensors capi_tensors(const GroupTensors& g) {
  return {sizeof(df11_group_tensors),
          g.luts.data(),
          g.luts.size(),
          g.encoded_exponent.data(),
          g.encoded_exponent.size(),
          g.sign_mantissa.data(),
          g.sign_mantissa.size(),
          g.gaps.data(),
          g.gaps.size(),
          g.output_positions.data(),
          g.output_positions.size()};
}

}  // namespace df11::test
