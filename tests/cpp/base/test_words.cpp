#include "cpufree/base/words.hpp"

#include "harness.hpp"

using namespace cpufree;

TEST(words_are_counted_from_0_whatever_lies_between_them) {
  const char* const text = "  0.20\t0.18 \n 1/80 11206\n";
  CHECK_EQ(word(text, 0), "0.20");
  CHECK_EQ(word(text, 2), "1/80");
  CHECK_EQ(word(text, 3), "11206");
}

TEST(words_that_a_text_lacks_are_empty) {
  CHECK_EQ(word("one two", 2), "");
  CHECK_EQ(word("one two ", 2), "");
  CHECK_EQ(word("", 0), "");
  CHECK_EQ(word(" \n", 1), "");
}

TEST(number_is_what_a_word_begins_with) {
  CHECK_EQ(number("1/80").value_or(-1), 1);
  CHECK_EQ(number("-7").value_or(0), -7);
  CHECK(!number("max").has_value());
  CHECK(!number("").has_value());
  CHECK(!number("99999999999999999999").has_value());
}

TEST(text_of_a_file_that_is_not_there_is_empty) {
  CHECK_EQ(text_of("/proc/no such file"), "");
  CHECK(!text_of("/proc/self/stat").empty());
}
