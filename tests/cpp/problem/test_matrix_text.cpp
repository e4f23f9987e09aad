#include "cpufree/problem/matrix_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "harness.hpp"

using namespace cpufree;

namespace {

struct Parsed {
  std::int64_t count = 0;
  std::vector<std::int32_t> row, col;
  std::vector<double> val;
};

Parsed parse(const std::string& text, std::size_t room = 4, std::int64_t n = 9) {
  Parsed found;
  found.row.resize(room);
  found.col.resize(room);
  found.val.resize(room);
  found.count = parse_entries(text, {n, n, found.row, found.col, found.val, {}, 0});
  return found;
}

}  // namespace

TEST(lines_hold_a_row_a_column_and_a_value) {
  const Parsed found = parse("1 2 3.5\n  9\t1\t-.25e+1 \r\n3 3 +7\n");
  CHECK_EQ(found.count, 3);
  CHECK(found.row == std::vector<std::int32_t>({0, 8, 2, 0}));
  CHECK(found.col == std::vector<std::int32_t>({1, 0, 2, 0}));
  CHECK(found.val == std::vector<double>({3.5, -2.5, 7.0, 0.0}));
}

TEST(whatever_else_a_line_holds_is_left_to_others) {
  for (const char* text : {"1 2\n",     "1 2 3 4\n",
                           "1 2 3x\n",  "0 1 1\n",
                           "1 10 1\n",  "1 2 3",
                           "\n",        "1 2 \n",
                           "1,2,3\n",   "1 2 1e\n",
                           "1 2 inf\n", "1 2 nan\n",
                           "1 2 1D\n",  "1 2 1e999\n",
                           "-1 2 3\n",  "1 2 +-3\n",
                           "1 2 --3\n", "1 2 0x1p3\n",
                           "1.0 2 3\n", "% 1 2\n",
                           "1 2 .\n",   "1 99999999999999999999 1\n"})
    CHECK_EQ(parse(text).count, -1);
}

TEST(exponents_are_read_as_fortran_prints_them) {
  const Parsed found = parse("1 1 1.5D+05\n1 2 -25d-1\n1 3 0.1000-100\n1 4 .25+101\n");
  CHECK_EQ(found.count, 4);
  CHECK(found.val == std::vector<double>({1.5e5, -2.5, 0.1e-100, 0.25e101}));
}

TEST(signs_that_fortran_prints_nowhere_are_left_to_others) {
  for (const char* text : {"1 2 1-100\n", "1 2 1.5-10\n", "1 2 1.5-1000\n", "1 2 1.5e5-100\n",
                           "1 2 1.5-1.5\n", "1 2 1.5D+-5\n", "1 2 1.5DE5\n", "1 2 1.5-100x\n"})
    CHECK_EQ(parse(text).count, -1);
}

TEST(bytes_of_all_kinds_are_left_to_others) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (c == ' ' || c == '\t' || c == '\r' || (c >= '0' && c <= '9')) continue;
    CHECK_EQ(parse(std::string("1 2 3") + (c == '\n' || c == '.' ? 'x' : c) + "\n").count, -1);
  }
}

TEST(more_lines_than_there_is_room_for_are_left_to_others) {
  CHECK_EQ(parse("1 1 1\n2 2 2\n", 2).count, 2);
  CHECK_EQ(parse("1 1 1\n2 2 2\n3 3 3\n", 2).count, -1);
}

TEST(no_text_has_no_entries) { CHECK_EQ(parse("").count, 0); }

TEST(whole_numbers_have_all_their_digits) {
  std::vector<std::int32_t> row(1), col(1);
  std::vector<std::int64_t> whole(1);
  CHECK_EQ(parse_entries("1 1 -9007199254740993\n", {1, 1, row, col, {}, whole, 0}), 1);
  CHECK_EQ(whole[0], -9007199254740993);
  CHECK_EQ(parse_entries("1 1 1.5\n", {1, 1, row, col, {}, whole, 0}), -1);
  CHECK_EQ(parse_entries("1 1 9223372036854775808\n", {1, 1, row, col, {}, whole, 0}), -1);
}

TEST(patterns_hold_a_row_and_a_column) {
  std::vector<std::int32_t> row(2), col(2);
  CHECK_EQ(parse_entries("1 2\n2 1\n", {2, 2, row, col, {}, {}, 0}), 2);
  CHECK(col == std::vector<std::int32_t>({1, 0}));
  CHECK_EQ(parse_entries("1 2 3\n", {2, 2, row, col, {}, {}, 0}), -1);
}

TEST(a_long_text_is_parsed_by_several_threads_to_the_same_entries) {
  std::mt19937 random(3);
  std::string text;
  Parsed hand;
  const std::int32_t n = 1 << 20;
  for (int k = 0; k < 200'000; ++k) {
    hand.row.push_back(static_cast<std::int32_t>(random() % n));
    hand.col.push_back(static_cast<std::int32_t>(random() % n));
    hand.val.push_back(static_cast<double>(random()) / 1024.0);
    text += std::to_string(hand.row.back() + 1) + ' ' + std::to_string(hand.col.back() + 1) + ' ' +
            std::to_string(hand.val.back()) + '\n';
  }
  for (auto& value : hand.val) value = std::stod(std::to_string(value));
  CHECK(text.size() > (std::size_t{3} << 20));
  const Parsed found = parse(text, hand.row.size(), n);
  CHECK_EQ(found.count, 200'000);
  CHECK(found.row == hand.row);
  CHECK(found.col == hand.col);
  CHECK(found.val == hand.val);
  text[text.size() / 2] = '%';
  CHECK_EQ(parse(text, hand.row.size(), n).count, -1);
}

namespace {

// A file without a name that holds a text, as long as it is needed.
class TextFile {
 public:
  explicit TextFile(const std::string& text) : file_(std::tmpfile(), &std::fclose) {
    CHECK_EQ(std::fwrite(text.data(), 1, text.size(), file_.get()), text.size());
    CHECK_EQ(std::fflush(file_.get()), 0);
  }
  int number() const { return fileno(file_.get()); }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

Parsed parse_file(const std::string& text, std::size_t begin, std::size_t room) {
  const TextFile file(text);
  Parsed found;
  found.row.resize(room);
  found.col.resize(room);
  found.val.resize(room);
  found.count = parse_entries_of_file(file.number(), static_cast<std::int64_t>(begin),
                                      static_cast<std::int64_t>(text.size()),
                                      {1 << 20, 1 << 20, found.row, found.col, found.val, {}, 0});
  return found;
}

}  // namespace

TEST(cores_that_read_a_file_for_themselves_find_the_entries_of_its_text) {
  std::mt19937 random(5);
  std::string text;
  constexpr std::size_t kLines = 220'000;
  for (std::size_t k = 0; k < kLines; ++k)
    text += std::to_string(1 + random() % (1 << 20)) + ' ' + std::to_string(1 + random() % 1000) +
            std::string(random() % 3 + 1, ' ') + std::to_string(random() % 100'000) + '\n';
  CHECK(text.size() > (std::size_t{3} << 20));
  // Lines are left out at the front, so that pieces end at other places in lines.
  constexpr std::size_t kMost = harness::shorter(24, 2);
  for (std::size_t left_out = 0; left_out < kMost; ++left_out) {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < left_out; ++k) begin = text.find('\n', begin) + 1;
    const Parsed whole = parse(text.substr(begin), kLines, 1 << 20);
    for (const bool ended : {true, false}) {
      const Parsed found =
          parse_file(ended ? text : text.substr(0, text.size() - 1), begin, kLines);
      CHECK_EQ(found.count, static_cast<std::int64_t>(kLines - left_out));
      CHECK(found.row == whole.row && found.col == whole.col && found.val == whole.val);
    }
  }
  CHECK_EQ(parse_file(text, 0, kLines - 1).count, -1);
}

TEST(a_file_with_anything_else_in_it_is_left_to_others) {
  const std::string lines = [] {
    std::string text;
    while (text.size() < (std::size_t{1} << 20)) text += "7 8 9.5\n";
    return text;
  }();
  CHECK_EQ(parse_file(lines + "1 1 1\n", 0, 1 << 20).count,
           static_cast<std::int64_t>(lines.size() / 8 + 1));
  for (const char* wrong : {"\n", "1 1\n", "1 1 x", "% 1\n"}) {
    CHECK_EQ(parse_file(lines + wrong, 0, 1 << 20).count, -1);
    CHECK_EQ(parse_file(wrong + lines, 0, 1 << 20).count, -1);
  }
  CHECK_EQ(parse_file("1 1" + std::string(2 << 20, ' ') + "1\n" + lines, 0, 1 << 20).count, -1);
  CHECK_EQ(parse_file("", 0, 4).count, 0);
}

TEST(a_file_that_is_shorter_than_was_said_is_left_to_others) {
  const TextFile file("1 1 1\n");
  std::vector<std::int32_t> row(4), col(4);
  std::vector<double> val(4);
  CHECK_EQ(parse_entries_of_file(file.number(), 0, 50, {9, 9, row, col, val, {}, 0}), -1);
  CHECK_EQ(parse_entries_of_file(-1, 0, 6, {9, 9, row, col, val, {}, 0}), -1);
}

TEST(entries_become_rows_with_rising_columns) {
  const auto a =
      rows_of_entries(std::vector<std::int32_t>{2, 0, 2, 1}, std::vector<std::int32_t>{2, 0, 0, 1},
                      std::vector<double>{4.0, 1.0, 3.0, 2.0}, 3, false);
  CHECK(a.has_value());
  CHECK(std::ranges::equal(a->row_ptr, std::vector<std::int64_t>({0, 1, 2, 4})));
  CHECK(std::ranges::equal(a->col, std::vector<std::int32_t>({0, 1, 0, 2})));
  CHECK(std::ranges::equal(a->val, std::vector<double>({1.0, 2.0, 3.0, 4.0})));
}

TEST(mirrored_entries_lie_on_both_sides) {
  const auto a =
      rows_of_entries(std::vector<std::int32_t>{0, 1, 1}, std::vector<std::int32_t>{0, 0, 1},
                      std::vector<double>{1.0, 5.0, 2.0}, 2, true);
  CHECK(a.has_value());
  CHECK(std::ranges::equal(a->col, std::vector<std::int32_t>({0, 1, 0, 1})));
  CHECK(std::ranges::equal(a->val, std::vector<double>({1.0, 5.0, 5.0, 2.0})));
}

TEST(entries_that_are_there_twice_are_left_to_others) {
  const std::vector<std::int32_t> row{0, 1, 0}, col{1, 0, 1};
  const std::vector<double> val{1.0, 1.0, 2.0};
  CHECK(!rows_of_entries(row, col, val, 2, false));
  const std::vector<std::int32_t> both{0, 1}, sides{1, 0};
  CHECK(!rows_of_entries(both, sides, std::vector<double>{1.0, 1.0}, 2, true));
}

TEST(many_entries_become_the_rows_that_sorting_gives) {
  std::mt19937 random(9);
  const std::int32_t n = 50'000;
  std::vector<std::int32_t> row, col;
  std::vector<double> val;
  for (std::int32_t i = 0; i < n; ++i)
    for (std::int32_t step = 1; step < 40; step += 1 + static_cast<std::int32_t>(random() % 9)) {
      row.push_back(i);
      col.push_back(static_cast<std::int32_t>((i + step * 977LL) % n));
      val.push_back(i + step / 64.0);
    }
  std::vector<std::size_t> order(row.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::shuffle(order, random);
  auto shuffled = [&](auto values) {
    auto to = values;
    for (std::size_t k = 0; k < order.size(); ++k) to[k] = values[order[k]];
    return to;
  };
  const auto a = rows_of_entries(shuffled(row), shuffled(col), shuffled(val), n, false);
  CHECK(a.has_value());
  CHECK_EQ(a->col.size(), row.size());
  bool same = true;
  std::size_t k = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    std::vector<std::pair<std::int32_t, double>> hand;
    for (; k < row.size() && row[k] == i; ++k) hand.emplace_back(col[k], val[k]);
    std::ranges::sort(hand);
    for (std::size_t e = 0; e < hand.size(); ++e) {
      const std::size_t place = at(a->row_ptr[at(i)]) + e;
      same = same && a->col[place] == hand[e].first && a->val[place] == hand[e].second;
    }
  }
  CHECK(same);
}
