#include "cpufree/problem/matrix_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kBytesOfTask = 1 << 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads one line after the other. Every `take` returns false where there is something else.
class Lines {
 public:
  explicit Lines(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool more() const { return at_ != end_; }
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  bool take_gap() {
    if (at_ == end_ || !is_blank(*at_)) return false;
    skip_blanks();
    return true;
  }
  // A number from 1 to `most`; from 0 to most - 1 in `number`.
  bool take_place(std::int64_t most, std::int32_t& number) {
    std::int64_t value = 0;
    const char* const first = at_;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      value = value * 10 + (*at_ - '0');
      if (value > most) return false;
    }
    if (at_ == first || value < 1) return false;
    number = static_cast<std::int32_t>(value - 1);
    return true;
  }
  // from_chars takes words, such as inf, and no plus sign: the first character tells.
  template <class T>
  bool take_value(T& value) {
    const bool plus = at_ != end_ && *at_ == '+';
    const char* const first = at_ + (plus ? 1 : 0);
    const bool minus = !plus && first != end_ && *first == '-';
    const char* const digits = first + (minus ? 1 : 0);
    if (digits == end_ || !(is_digit(*digits) || *digits == '.')) return false;
    const auto [last, error] = std::from_chars(first, end_, value);
    if (error != std::errc()) return false;
    at_ = last;
    if constexpr (std::is_floating_point_v<T>)
      if (at_ != end_ && !is_blank(*at_) && *at_ != '\n') return take_exponent(first, value);
    return true;
  }
  bool take_end() {
    skip_blanks();
    if (at_ == end_ || *at_ != '\n') return false;
    ++at_;
    return true;
  }

 private:
  // What Fortran prints after the digits: D for E, and no letter before three digits, as in
  // 0.1-100. `first`: where the number begins.
  template <class T>
  bool take_exponent(const char* first, T& value) {
    std::array<char, 64> text;
    const char* const stop =
        std::find_if(at_, end_, [](char c) { return is_blank(c) || c == '\n'; });
    if (stop - first >= std::ssize(text)) return false;
    const bool letter = *at_ == 'D' || *at_ == 'd';
    if (!letter &&
        !((*at_ == '-' || *at_ == '+') && stop - at_ == 4 && std::find(first, at_, '.') != at_))
      return false;
    char* end = std::copy(first, at_, text.data());
    *end++ = 'E';
    end = std::copy(at_ + (letter ? 1 : 0), stop, end);
    const auto [last, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || last != end) return false;
    at_ = stop;
    return true;
  }

  const char* at_;
  const char* end_;
};

bool take_entry(Lines& lines, const TextTarget& to, std::size_t place) {
  lines.skip_blanks();
  if (!lines.take_place(to.n_rows, to.row[place]) || !lines.take_gap() ||
      !lines.take_place(to.n_columns, to.col[place]))
    return false;
  if (!to.real.empty() && !(lines.take_gap() && lines.take_value(to.real[place]))) return false;
  if (!to.whole.empty() && !(lines.take_gap() && lines.take_value(to.whole[place]))) return false;
  return lines.take_end();
}

// Pieces of a text, each of which ends where a line ends.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t found = text.find('\n', std::min(text.size() - 1, at(kBytesOfTask)));
    const std::size_t size = found == std::string_view::npos ? text.size() : found + 1;
    pieces.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

}  // namespace

std::int64_t parse_entries(std::string_view text, const TextTarget& target) {
  const auto pieces = pieces_of(text);
  std::vector<std::int64_t> first(pieces.size() + 1, target.next);
  in_parallel(static_cast<int>(pieces.size()),
              [&](int k) { first[at(k) + 1] = std::ranges::count(pieces[at(k)], '\n'); });
  std::partial_sum(first.begin(), first.end(), first.begin());
  if (first.back() > static_cast<std::int64_t>(target.row.size())) return -1;
  std::atomic<bool> good = true;
  in_parallel(static_cast<int>(pieces.size()), [&](int k) {
    Lines lines(pieces[at(k)]);
    std::int64_t place = first[at(k)];
    for (; good.load(std::memory_order_relaxed) && place < first[at(k) + 1]; ++place)
      if (!take_entry(lines, target, at(place))) good = false;
    if (lines.more()) good = false;  // a line without its end
  });
  return good ? first.back() - target.next : -1;
}

namespace {

constexpr std::int64_t kLongestLine = 1 << 12;

// Bytes of a file that a core reads for itself.
class FileBytes {
 public:
  explicit FileBytes(std::int64_t room)
      : bytes_(std::make_unique_for_overwrite<char[]>(at(room))) {}

  bool read(int file, std::int64_t begin, std::int64_t end) {
    size_ = 0;
    while (begin + size_ < end) {
      const ssize_t got = pread(file, bytes_.get() + size_, at(end - begin - size_), begin + size_);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      size_ += got;
    }
    return true;
  }
  void append(char c) { bytes_[at(size_++)] = c; }
  std::string_view text() const { return {bytes_.get(), at(size_)}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::int64_t size_ = 0;
};

// The bytes of a file that hold entries, in pieces of equal size, which end anywhere in lines.
struct FilePieces {
  int file;
  std::int64_t begin, end;

  int count() const { return static_cast<int>((end - begin + kBytesOfTask - 1) / kBytesOfTask); }
  std::int64_t first(int k) const { return begin + k * kBytesOfTask; }
  std::int64_t last(int k) const { return std::min(end, first(k) + kBytesOfTask); }
};

// Ends of lines in a piece, -1 where it cannot be read. The end of the file ends a line, too.
std::int64_t ends_in(const FilePieces& pieces, int k) {
  FileBytes bytes(kBytesOfTask);
  if (!bytes.read(pieces.file, pieces.first(k), pieces.last(k))) return -1;
  const std::int64_t ends = std::ranges::count(bytes.text(), '\n');
  return ends + (pieces.last(k) == pieces.end && !bytes.text().ends_with('\n') ? 1 : 0);
}

// Parses the lines that begin in a piece. ends[k]: ends of lines before piece k; the last one is
// that of all. A line that begins in one piece and ends in the next belongs to the first, which
// reads on for it. False, too, where there are other lines than have been counted: the file is
// being written, and nothing may be stored beyond the places that the count has given.
bool parse_piece(const FilePieces& pieces, int k, const std::vector<std::int64_t>& ends,
                 const TextTarget& target) {
  const std::int64_t before = k > 0 ? 1 : 0;
  const std::int64_t last = std::min(pieces.end, pieces.last(k) + kLongestLine);
  FileBytes bytes(kBytesOfTask + kLongestLine + 2);
  if (!bytes.read(pieces.file, pieces.first(k) - before, last)) return false;
  if (last == pieces.end && !bytes.text().ends_with('\n')) bytes.append('\n');
  const std::string_view text = bytes.text();
  std::size_t first = at(before);
  std::int64_t place = target.next + ends[at(k)];
  if (before == 1 && text.front() != '\n') {
    first = std::min(text.find('\n', 1), text.size()) + 1;
    ++place;
  }
  const std::size_t here = at(pieces.last(k) - pieces.first(k) + before);
  const std::int64_t open = text[here - 1] == '\n' ? 0 : 1;  // a line goes on in the next piece
  const std::int64_t limit = target.next + std::min(ends[at(k + 1)] + open, ends.back());
  // Where no line begins, who has this one sees whether it is too long.
  if (first >= here) return place == limit;
  const std::size_t end = text.find('\n', here - 1);
  if (end == std::string_view::npos) return false;
  Lines lines(text.substr(first, end + 1 - first));
  for (; lines.more(); ++place)
    if (place >= limit || !take_entry(lines, target, at(place))) return false;
  return place == limit;
}

}  // namespace

std::int64_t parse_entries_of_file(int file, std::int64_t begin, std::int64_t end,
                                   const TextTarget& target) {
  const FilePieces pieces{file, begin, end};
  std::vector<std::int64_t> ends(at(pieces.count() + 1), 0);
  std::atomic<bool> good = true;
  in_parallel(pieces.count(), [&](int k) {
    ends[at(k + 1)] = ends_in(pieces, k);
    if (ends[at(k + 1)] < 0) good = false;
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  if (!good || target.next + ends.back() > static_cast<std::int64_t>(target.row.size())) return -1;
  in_parallel(pieces.count(), [&](int k) {
    if (good.load(std::memory_order_relaxed) && !parse_piece(pieces, k, ends, target)) good = false;
  });
  return good ? ends.back() : -1;
}

namespace {

// The places of entries in rows, filled by several threads.
class RowCursors {
 public:
  explicit RowCursors(std::size_t rows) { next_.resize(rows); }
  std::int64_t take(std::int32_t row) {
    return std::atomic_ref(next_[at(row)]).fetch_add(1, std::memory_order_relaxed);
  }
  // Turns counts into first places; returns where all rows begin and the last one ends.
  PageVector<std::int64_t> lay_out() {
    PageVector<std::int64_t> row_ptr;
    row_ptr.resize(next_.size() + 1);
    row_ptr[0] = 0;
    for (std::size_t i = 0; i < next_.size(); ++i) {
      row_ptr[i + 1] = row_ptr[i] + next_[i];
      next_[i] = row_ptr[i];
    }
    return row_ptr;
  }

 private:
  PageVector<std::int64_t> next_;  // begins with zeros, as its memory does
};

template <class F>
void for_entries(std::size_t count, F&& f) {
  constexpr std::size_t kOfTask = std::size_t{1} << 18;
  in_parallel(static_cast<int>((count + kOfTask - 1) / kOfTask), [&](int task) {
    const std::size_t last = std::min(count, (at(task) + 1) * kOfTask);
    for (std::size_t k = at(task) * kOfTask; k < last; ++k) f(k);
  });
}

struct Entry {
  std::int32_t column;
  double value;
};

// Sorts one row by columns. Returns false where a column is there twice.
bool sort_row(std::int32_t* columns, double* values, std::size_t count,
              std::vector<Entry>& scratch) {
  if (std::adjacent_find(columns, columns + count, std::greater_equal<>()) == columns + count)
    return true;
  scratch.clear();
  for (std::size_t k = 0; k < count; ++k) scratch.push_back({columns[k], values[k]});
  std::ranges::sort(scratch, {}, &Entry::column);
  for (std::size_t k = 0; k < count; ++k) {
    columns[k] = scratch[k].column;
    values[k] = scratch[k].value;
  }
  return std::adjacent_find(columns, columns + count) == columns + count;
}

}  // namespace

std::optional<CsrArrays> rows_of_entries(std::span<const std::int32_t> row,
                                         std::span<const std::int32_t> col,
                                         std::span<const double> val, std::int32_t n, bool mirror) {
  RowCursors cursors(at(n));
  for_entries(row.size(), [&](std::size_t k) {
    cursors.take(row[k]);
    if (mirror && row[k] != col[k]) cursors.take(col[k]);
  });
  CsrArrays a;
  a.row_ptr = cursors.lay_out();
  a.col.resize(at(a.row_ptr.back()));
  a.val.resize(at(a.row_ptr.back()));
  const auto put = [&](std::int32_t i, std::int32_t j, double value) {
    const std::size_t place = at(cursors.take(i));
    a.col[place] = j;
    a.val[place] = value;
  };
  for_entries(row.size(), [&](std::size_t k) {
    put(row[k], col[k], val[k]);
    if (mirror && row[k] != col[k]) put(col[k], row[k], val[k]);
  });
  std::atomic<bool> once = true;
  constexpr std::int32_t kRowsOfTask = 1 << 14;
  in_parallel(n / kRowsOfTask + 1, [&](int task) {
    std::vector<Entry> scratch;
    const std::int64_t first = std::int64_t{task} * kRowsOfTask;
    const auto last = static_cast<std::int32_t>(std::min<std::int64_t>(n, first + kRowsOfTask));
    for (auto i = static_cast<std::int32_t>(first); i < last; ++i) {
      const std::size_t begin = at(a.row_ptr[at(i)]);
      const std::size_t count = at(a.row_ptr[at(i) + 1]) - begin;
      if (!sort_row(a.col.data() + begin, a.val.data() + begin, count, scratch)) once = false;
    }
  });
  if (!once) return std::nullopt;
  return a;
}

}  // namespace cpufree
