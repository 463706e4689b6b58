// The compression function of SHA-256 (FIPS 180-4, section 6.2) over two messages at once.
//
// One message leaves a processor's SHA unit idle half of the time, since each round waits for the
// one before it. Two interleaved take hardly longer than one (spec/cpu_speed.md). OpenSSL has this
// for TLS only; no packaged library has it for streams. All else of SHA-256 stays OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace df11 {

// Whether this processor can.
bool has_sha256_pair();

// Takes `n_blocks` blocks of 64 bytes of each message into its state of 8 words.
// Only where has_sha256_pair().
void sha256_pair(uint32_t* a_state, const uint8_t* a, uint32_t* b_state, const uint8_t* b,
                 size_t n_blocks);

}  // namespace df11
