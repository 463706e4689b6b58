// A child process that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "format/bytes.h"
#include "format/error.h"

namespace df11::bench {

class PeerProcess {
 public:
  // Starts `arguments` (the program, searched for in PATH, first); its stderr is dropped.
  // Errors: not_found and other failures of posix_spawnp(3).
  static Result<PeerProcess> start(const std::vector<std::string>& arguments);

  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&&) = delete;
  // Closes the child's stdin, which ends it, and waits for it.
  ~PeerProcess();

  // Errors of both: io_error when the child has ended.
  Result<void> send(ByteSpan bytes);
  Result<std::string> read_line();

 private:
  PeerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;  // the child's stdin and stdout
  std::string received_;
};

}  // namespace df11::bench
