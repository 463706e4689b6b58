// Google Highway: vector code in one source, compiled once for each kind of vector unit; the best
// one is chosen at run time.
//
// A file of such code defines HWY_TARGET_INCLUDE as its own path before it includes this header, is
// then included again for each target, and puts what differs by target between HWY_BEFORE_NAMESPACE
// and HWY_AFTER_NAMESPACE. No include guard: Highway's headers have their own, by target.

// Left out are targets that cannot shift each lane by a count of its own, for which scalar code is
// as good, and those whose vectors have no size at compile time: their machines have NEON too.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#ifdef HWY_TARGET_INCLUDE
#include <hwy/foreach_target.h>
#endif
#include <hwy/highway.h>

// Whether the target at hand is a vector unit.
#undef DF11_HAS_SIMD
#define DF11_HAS_SIMD (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
