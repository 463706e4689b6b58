// What every program shares: command line, exit codes, signals, progress, number formats.
// The one place that includes CLI11.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>

#include "decoder/decoder.h"
#include "format/error.h"
#include "format/number_text.h"
#include "format/parallel.h"
#include "format/progress.h"

namespace df11::cli {

// Exit codes of all programs (spec/cli.md).
inline constexpr int kExitGood = 0;      // done, or proven equal
inline constexpr int kExitNotEqual = 1;  // checked: not equal or corrupt
inline constexpr int kExitFailed = 2;    // could not do it: usage, I/O, unsupported

// Parses argv into `app`. Returns the exit code when the program should end now (help, version, bad
// usage), or nothing.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// Adds --threads; 0 stands for all.
void add_threads_option(CLI::App& app, int& n_threads);

// Adds --quiet and --json of programs that end in a summary.
void add_summary_options(CLI::App& app, bool& quiet, bool& json);

// Adds --device, which says what decodes.
void add_device_option(CLI::App& app, DeviceChoice& device);

// For an option of a size in bytes: "5GB" and "500MiB" as transformers writes them, or bytes alone.
CLI::Validator file_size();

// Makes SIGINT and SIGTERM set the token that is returned.
const CancelToken& cancel_on_signals();

// `text` on one line: control characters, which names can have, as \xNN.
std::string printable(std::string_view text);

// Prints "program: error: …" on stderr and returns the exit code for `error`; 128 + signal number
// when a signal caused it. Says how to go on if the program was writing `output` and left a part.
int report_error(std::string_view program, const Error& error,
                 const std::filesystem::path& output = {});

// Runs a program's body, with as many open files as the system allows. Turns an exception, of which
// running out of memory is the one to expect, into an error line and an exit code.
int guarded_main(std::string_view program, const std::function<int()>& body);

// Shows progress on stderr while it lives, if stderr is a terminal and `quiet` is false.
class ProgressLine {
 public:
  ProgressLine(const Progress& progress, bool quiet);
  ~ProgressLine();

 private:
  void run(const std::stop_token& stop);
  const Progress& progress_;
  std::jthread thread_;
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

using df11::format_bytes;
using df11::format_count;
using df11::format_fixed;
using df11::format_percent;
std::string format_seconds(double seconds);  // "0.42 s", "3:07"

// Columns of text, each as wide as its widest cell; numbers right-aligned where `right` says so.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> right);
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string to_string() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace df11::cli
