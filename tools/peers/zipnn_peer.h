// zipnn_peer.py, compiled in so that df11-bench needs no file beside it.
#pragma once

#include <string_view>

namespace df11::bench {

std::string_view zipnn_peer_script();

}  // namespace df11::bench
