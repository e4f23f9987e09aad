// Libraries that are loaded when they are wanted: what errors say.
#include "cpufree/base/shared_library.hpp"

#include "harness.hpp"

using namespace cpufree;

TEST(missing_function_is_told_with_the_name_that_users_know) {
  std::string text;
  try {
    std::function<void()> none;
    SharedLibrary("libc.so.6", "the back end of pigeons", "the same build", "feed them")
        .find("no_such_function", none);
  } catch (const Unsupported& error) {
    text = error.what();
  }
  CHECK_EQ(text,
           "the back end of pigeons has no function no_such_function: the same build is needed");
}
