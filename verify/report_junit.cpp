// The report as JUnit XML, the form in which CI systems take test results.
#include <algorithm>
#include <set>

#include "verify/report.h"

namespace df11 {

namespace {

// Bytes of the UTF-8 sequence at the front of `text`; 0 when it is none that XML 1.0 can hold.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80            ? 1
                        : byte(0) >> 5 == 0b110   ? 2
                        : byte(0) >> 4 == 0b1110  ? 3
                        : byte(0) >> 3 == 0b11110 ? 4
                                                  : 0;
  if (length == 0 || length > text.size()) return 0;
  uint32_t code = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kShortest[] = {0x20, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool noncharacter = code == 0xfffe || code == 0xffff;
  return code >= kShortest[length - 1] && code <= 0x10ffff && !surrogate && !noncharacter ? length
                                                                                          : 0;
}

// `text` for an attribute; bytes that XML cannot hold as \xNN.
std::string escaped(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string xml;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(c);
      xml += "\\x";
      xml += kHexDigits[byte >> 4];
      xml += kHexDigits[byte & 15];
    } else if (c == '&') {
      xml += "&amp;";
    } else if (c == '<') {
      xml += "&lt;";
    } else if (c == '>') {
      xml += "&gt;";
    } else if (c == '"') {
      xml += "&quot;";
    } else {
      xml += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return xml;
}

class Suite {
 public:
  void pass(std::string_view check, std::string_view name) { add(check, name, ""); }
  void fail(std::string_view check, std::string_view name, std::string_view type,
            std::string_view message) {
    ++n_failures_;
    add(check, name,
        "<failure type=\"" + escaped(type) + "\" message=\"" + escaped(message) + "\"/>");
  }
  void skip(std::string_view check, std::string_view name, std::string_view reason) {
    ++n_skipped_;
    add(check, name, "<skipped message=\"" + escaped(reason) + "\"/>");
  }

  std::string to_xml(std::string_view artifact, std::string_view verdict, double seconds) const {
    const std::string counts = " tests=\"" + std::to_string(n_cases_) + "\" failures=\"" +
                               std::to_string(n_failures_) + "\" errors=\"0\" skipped=\"" +
                               std::to_string(n_skipped_) + "\" time=\"" + std::to_string(seconds) +
                               "\"";
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"" +
           escaped("df11-verify " + std::string(artifact)) + "\"" + counts +
           ">\n  <properties><property name=\"verdict\" value=\"" + escaped(verdict) +
           "\"/></properties>\n" + cases_ + " </testsuite>\n</testsuites>\n";
  }

 private:
  void add(std::string_view check, std::string_view name, const std::string& body) {
    ++n_cases_;
    cases_ += "  <testcase classname=\"" + escaped("df11-verify." + std::string(check)) +
              "\" name=\"" + escaped(name) + "\"";
    cases_ += body.empty() ? "/>\n" : ">" + body + "</testcase>\n";
  }
  std::string cases_;
  size_t n_cases_ = 0, n_failures_ = 0, n_skipped_ = 0;
};

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string to_junit(const VerifyReport& report, double seconds) {
  Suite suite;
  std::set<std::string> bad_files, bad_checks;
  for (const Finding& finding : report.findings) {
    const bool of_shard = std::find(report.shards.begin(), report.shards.end(),
                                    file_name(finding.file)) != report.shards.end();
    const std::string name = finding.file + (finding.tensor.empty() ? "" : " ") + finding.tensor;
    bad_files.insert(file_name(finding.file));
    if (!of_shard) bad_checks.insert("files");
    suite.fail(of_shard ? "shard" : "files", name.empty() ? finding.kind : name, finding.kind,
               finding.message);
  }
  if (report.n_findings_dropped != 0) {
    suite.fail("files", "further findings", "dropped",
               std::to_string(report.n_findings_dropped) + " more findings");
  }
  for (const std::string& shard : report.shards) {
    if (!bad_files.contains(shard)) suite.pass("shard", shard);
  }
  if (bad_checks.empty()) suite.pass("files", "listing, index, config.json, manifest");
  for (const SkippedCheck& skipped : report.skipped)
    suite.skip("skipped", skipped.check, skipped.reason);
  for (const std::string& path : report.ignored_files) suite.skip("files", path, "--ignore");
  if (report.lint) {
    for (const LintFinding& finding : *report.lint) {
      const std::string name = finding.file + (finding.module.empty() ? "" : " ") + finding.module;
      if (finding.severity == LintSeverity::kError) {
        suite.fail("lint", name, finding.rule, finding.message);
      } else {
        suite.skip("lint", name, "warning: " + finding.rule + ": " + finding.message);
      }
    }
    if (report.lint->empty()) suite.pass("lint", "loader lint");
  }
  return suite.to_xml(report.artifact, report.verdict(), seconds);
}

}  // namespace df11
