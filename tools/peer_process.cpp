#include "tools/peer_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace df11::bench {

Result<PeerProcess> PeerProcess::start(const std::vector<std::string>& arguments) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return fail(system_error(errno, "socketpair", ""));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid;
  const int failure = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  if (failure != 0) {
    ::close(sockets[0]);
    return fail(system_error(failure, "starting it", arguments[0]));
  }
  return PeerProcess(pid, sockets[0]);
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept
    : pid_(other.pid_),
      socket_(std::exchange(other.socket_, -1)),
      received_(std::move(other.received_)) {}

PeerProcess::~PeerProcess() {
  if (socket_ < 0) return;
  ::close(socket_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> PeerProcess::send(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error(errno, "talking to it", ""));
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> PeerProcess::read_line() {
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer;
    const ssize_t n = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {  // reset: it had not read all of its stdin
      return fail(ErrorCode::io_error, "it ended without an answer");
    }
    if (n < 0) return fail(system_error(errno, "listening to it", ""));
    received_.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace df11::bench
