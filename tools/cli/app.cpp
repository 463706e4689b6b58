#include "tools/cli/app.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>

#include "format/partial_output.h"
#include "format/version.h"

namespace df11::cli {

namespace {

CancelToken cancel_token;
volatile std::sig_atomic_t caught_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free);  // cancel() runs in a signal handler

void on_signal(int signal) {
  caught_signal = signal;
  cancel_token.cancel();
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}

// Artifacts may have more files than a process may have open by default.
void raise_file_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // without it, opening fails and says why
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", std::string(kVersion));
  app.get_formatter()->column_width(34);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error, std::cout, std::cerr);
      return std::cout.flush() ? kExitGood : kExitFailed;
    }
    std::string_view program = argv[0];
    program.remove_prefix(program.rfind('/') + 1);
    std::cerr << program << ": error: " << printable(error.what()) << " (see --help)\n";
    return kExitFailed;
  }
}

void add_threads_option(CLI::App& app, int& n_threads) {
  app.add_option("--threads", n_threads, "threads to use (default: all)")
      ->check(CLI::Range(1, 4096));
}

void add_summary_options(CLI::App& app, bool& quiet, bool& json) {
  app.add_flag("--quiet", quiet, "no progress and no summary");
  app.add_flag("--json", json, "print the summary as JSON");
}

void add_device_option(CLI::App& app, DeviceChoice& device) {
  const std::map<std::string, DeviceChoice> devices = {
      {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}};
  app.add_option("--device", device, "what decodes: auto (the CPU, which is faster), cpu or cuda")
      ->transform(CLI::CheckedTransformer(devices))
      ->option_text("auto|cpu|cuda");
}

CLI::Validator file_size() {
  const auto to_bytes = [](std::string& text) -> std::string {
    static constexpr std::array<std::pair<std::string_view, uint64_t>, 9> kUnits = {
        {{"KiB", uint64_t{1} << 10},
         {"MiB", uint64_t{1} << 20},
         {"GiB", uint64_t{1} << 30},
         {"TiB", uint64_t{1} << 40},
         {"KB", 1'000},
         {"MB", 1'000'000},
         {"GB", 1'000'000'000},
         {"TB", 1'000'000'000'000},
         {"", 1}}};
    uint64_t n = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const auto& known) { return known.first == suffix; });
    if (status != std::errc() || unit == kUnits.end() || n == 0 || n > UINT64_MAX / unit->second) {
      return "\"" + text + "\" is no size such as 5GB, 500MiB or 1000000";
    }
    text = std::to_string(n * unit->second);
    return "";
  };
  return CLI::Validator(to_bytes, "", "file_size");
}

const CancelToken& cancel_on_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write, EFBIG
  return cancel_token;
}

int report_error(std::string_view program, const Error& error,
                 const std::filesystem::path& output) {
  if (error.code == ErrorCode::cancelled && caught_signal != 0) {
    std::cerr << program << ": stopped by signal " << caught_signal;
    const std::filesystem::path partial = partial_path(output);
    std::error_code ignored;
    if (!output.empty() && std::filesystem::exists(partial, ignored)) {
      std::cerr << "; what is finished is in " << printable(partial.string())
                << ": --resume goes on from there, a run without it starts over\n";
    } else {
      std::cerr << "; nothing was left behind\n";
    }
    return 128 + caught_signal;
  }
  std::cerr << program << ": error: " << printable(error.describe()) << "\n";
  return kExitFailed;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      result += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
      result += escape;
    }
  }
  return result;
}

int guarded_main(std::string_view program, const std::function<int()>& body) {
  raise_file_limit();
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::cerr << program << ": error: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << program << ": error: " << error.what() << "\n";
  }
  return kExitFailed;
}

ProgressLine::ProgressLine(const Progress& progress, bool quiet) : progress_(progress) {
  if (quiet || ::isatty(STDERR_FILENO) == 0) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ProgressLine::~ProgressLine() = default;

void ProgressLine::run(const std::stop_token& stop) {
  const Stopwatch watch;
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double done = static_cast<double>(progress_.done_bytes.load());
    const double total = static_cast<double>(progress_.total_bytes.load());
    if (total <= 0 || done <= 0) continue;
    const double seconds = watch.seconds();
    const double rate = done / seconds;
    std::string line = "\r\033[K" + format_percent(std::min(done, total), total) + "  " +
                       format_bytes(done) + " of " + format_bytes(total) + "  " +
                       format_bytes(rate) + "/s  " +
                       format_seconds(std::max(0.0, total - done) / rate) + " left";
    std::fputs(line.c_str(), stderr);
  }
  std::fputs("\r\033[K", stderr);
}

std::string format_seconds(double seconds) {
  if (seconds < 60) return format_fixed(seconds, seconds < 10 ? 2 : 1) + " s";
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  char text[64];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu",
                  static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned long long>(whole / 60 % 60),
                  static_cast<unsigned long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu:%02llu", static_cast<unsigned long long>(whole / 60),
                  static_cast<unsigned long long>(whole % 60));
  }
  return text;
}

Table::Table(std::vector<std::string> header, std::vector<bool> right) : right_(std::move(right)) {
  rows_.push_back(std::move(header));
}

std::string Table::to_string() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i != 0) line += "  ";
      line += right_[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace df11::cli
