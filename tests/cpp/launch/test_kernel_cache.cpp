// Machine code on disk, with a stand-in for the compiler.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/launch/gpu/compiled/kernel_codes.hpp"
#include "harness.hpp"

namespace {

using namespace cpufree;
namespace fs = std::filesystem;

// A folder that is removed again.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cpufree-cache-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw EngineError("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code error;
    fs::permissions(path_, fs::perms::owner_all, error);
    fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  // Those of codes; what processes lock stays beside them.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path_))
      if (!entry.path().filename().string().starts_with(".lock")) found.push_back(entry.path());
    return found;
  }

 private:
  fs::path path_;
};

// "Compiles" by turning the text round, and counts.
struct Stand {
  std::atomic<int> compiled = 0;
  CodeMaker maker(const std::string& version = "1.0") {
    return {version, [this](const std::string& source, const std::string& architecture) {
              ++compiled;
              return architecture + std::string(1, '\0') +
                     std::string(source.rbegin(), source.rend());
            }};
  }
};

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void overwrite(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

const std::string kAbcCode = std::string("sm_90") + '\0' + "cba";

TEST(code_is_compiled_once_and_then_read_from_disk) {
  const Folder folder;
  Stand stand;
  const CodeCache cache(folder.path() + "/made/when/needed");
  for (int time = 0; time < 2; ++time)
    CHECK(codes_of({"abc"}, "sm_90", stand.maker(), cache)[0] == kAbcCode);
  CHECK_EQ(stand.compiled.load(), 1);
}

TEST(codes_come_in_the_order_of_the_sources) {
  const Folder folder;
  Stand stand;
  const CodeCache cache(folder.path());
  codes_of({"two"}, "a", stand.maker(), cache);
  const auto codes = codes_of({"one", "two", "three"}, "a", stand.maker(), cache);
  CHECK_EQ(codes.size(), std::size_t{3});
  CHECK(codes[0].ends_with("eno") && codes[1].ends_with("owt") && codes[2].ends_with("eerht"));
  CHECK_EQ(stand.compiled.load(), 3);
}

TEST(other_source_architecture_or_compiler_is_other_code) {
  const Folder folder;
  Stand stand;
  const CodeCache cache(folder.path());
  codes_of({"abc"}, "sm_90", stand.maker(), cache);
  codes_of({"abd"}, "sm_90", stand.maker(), cache);
  codes_of({"abc"}, "sm_100", stand.maker(), cache);
  codes_of({"abc"}, "sm_90", stand.maker("1.1"), cache);
  CHECK_EQ(stand.compiled.load(), 4);
}

TEST(keys_tell_where_one_text_ends_and_the_next_begins) {
  CHECK(hash_of({"ab", "c"}) != hash_of({"a", "bc"}));
  CHECK(hash_of({"ab", ""}) != hash_of({"ab"}));
  CHECK_EQ(hash_of({"ab", "c"}), hash_of({"ab", "c"}));
}

TEST(damaged_file_is_compiled_anew_and_mended) {
  const Folder folder;
  Stand stand;
  const CodeCache cache(folder.path());
  codes_of({"abc"}, "sm_90", stand.maker(), cache);
  CHECK_EQ(folder.files().size(), std::size_t{1});
  const fs::path file = folder.files().at(0);
  const std::string whole = contents(file);
  std::string flipped = whole;
  flipped.back() ^= 1;
  int compiled = 1;
  for (const std::string& damaged : {flipped, whole.substr(0, whole.size() - 1), whole + "x",
                                     std::string("not code at all"), std::string()}) {
    overwrite(file, damaged);
    CHECK(codes_of({"abc"}, "sm_90", stand.maker(), cache)[0] == kAbcCode);
    CHECK_EQ(stand.compiled.load(), ++compiled);
    CHECK(contents(file) == whole);
  }
}

TEST(without_a_folder_nothing_is_kept) {
  Stand stand;
  for (int time = 0; time < 2; ++time)
    CHECK(codes_of({"abc"}, "sm_90", stand.maker(), CodeCache(""))[0] == kAbcCode);
  CHECK_EQ(stand.compiled.load(), 2);
}

TEST(folder_that_cannot_be_made_is_no_error) {
  const Folder folder;
  overwrite(folder.path() + "/file", "");
  Stand stand;
  const CodeCache cache(folder.path() + "/file/folder");
  CHECK(codes_of({"abc"}, "sm_90", stand.maker(), cache)[0] == kAbcCode);
  CHECK_EQ(stand.compiled.load(), 1);
}

TEST(nothing_but_the_code_stays_in_the_folder) {
  const Folder folder;
  Stand stand;
  const CodeCache cache(folder.path());
  for (int time = 0; time < 3; ++time) cache.keep("7", "code");
  CHECK_EQ(folder.files().size(), std::size_t{1});
  CHECK(cache.find("7") == "code");
}

TEST(many_at_once_find_whole_code_or_none) {
  const Folder folder;
  const std::string code(100'000, 'c');
  std::atomic<int> wrong = 0, seen = 0;
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k)
      threads.emplace_back([&] {
        const CodeCache cache(folder.path());  // as a process of its own has
        for (int time = 0; time < 20; ++time) {
          cache.keep("1", code);
          const auto found = cache.find("1");
          ++(found == code ? seen : wrong);
        }
      });
  }
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(seen.load(), 80);
  CHECK_EQ(folder.files().size(), std::size_t{1});
}

TEST(code_is_made_by_one_of_those_that_want_it) {
  const Folder folder;
  std::atomic<int> compiled = 0, wrong = 0;
  const CodeMaker slow = {"1.0", [&](const std::string&, const std::string&) {
                            ++compiled;
                            std::this_thread::sleep_for(std::chrono::milliseconds(200));
                            return std::string("code");
                          }};
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 8; ++k)
      threads.emplace_back([&] {
        const CodeCache cache(folder.path());  // as a process of its own has
        if (code_of("abc", "sm_90", slow, cache) != "code") ++wrong;
      });
  }
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(compiled.load(), 1);
}

TEST(maker_that_takes_too_long_is_waited_for_no_more) {
  const Folder folder;
  const CodeCache cache(folder.path());
  const CodeClaim first = cache.claim("1");
  const CodeClaim second = cache.claim("1", std::chrono::seconds(0));  // comes back
  CHECK(!cache.find("1"));
}

TEST(code_is_kept_in_the_first_folder_that_can_be_written_and_found_in_all) {
  const Folder folder;
  overwrite(folder.path() + "/file", "");
  const std::string other = folder.path() + "/other";
  CodeCache(folder.path()).keep("1", "in the second");
  const CodeCache cache(std::vector{folder.path() + "/file/folder", other, folder.path()});
  CHECK(cache.keep("2", "code") == other + "/2.kernel");
  CHECK(cache.find("1") == "in the second");
  CHECK(cache.find_file("2") == other + "/2.kernel");
}

TEST(what_the_compiler_throws_is_passed_on_and_nothing_is_kept) {
  const Folder folder;
  const CodeMaker broken = {"1.0", [](const std::string&, const std::string&) -> std::string {
                              throw EngineError("line 7: no such word");
                            }};
  CHECK_THROWS(EngineError, codes_of({"abc"}, "sm_90", broken, CodeCache(folder.path())));
  CHECK(folder.files().empty());
}

}  // namespace

TEST(kernels_that_come_with_the_package_are_found_by_all_that_they_depend_on) {
  const Folder folder;
  const ShippedCodes shipped(folder.path(), "options and headers");
  shipped.keep("a kernel", "sm_90", "machine code");
  CHECK(shipped.find("a kernel", "sm_90") == std::optional<std::string>("machine code"));
  CHECK(!shipped.find("a kernel", "sm_100"));
  CHECK(!shipped.find("another one", "sm_90"));
  CHECK(!shipped.find("a kernel", "sm_90", {"--other"}));
  CHECK(!ShippedCodes(folder.path(), "other headers").find("a kernel", "sm_90"));
  CHECK(!ShippedCodes("", "options and headers").find("a kernel", "sm_90"));
  CHECK_EQ(folder.files().size(), std::size_t{1});
}

TEST(kernels_that_come_with_the_package_are_no_part_of_those_that_were_compiled_here) {
  const Folder folder;
  Stand stand;
  ShippedCodes(folder.path(), "1.0").keep("a kernel", "sm_90", "machine code");
  codes_of({"a kernel"}, "sm_90", stand.maker("1.0"), CodeCache(folder.path()));
  CHECK_EQ(stand.compiled.load(), 1);
}

TEST(a_code_that_another_thread_makes_is_waited_for_and_made_once) {
  CodesInTheMaking codes;
  std::atomic<int> made = 0;
  std::atomic<bool> go = false;
  const auto slowly = [&](const std::string& name) {
    ++made;
    while (!go) std::this_thread::yield();
    return "code of " + name;
  };
  std::jthread first([&] { codes.get({"one", "two"}, slowly); });
  while (made == 0) std::this_thread::yield();
  std::vector<std::string> found;
  std::jthread second([&] {
    for (const auto& code : codes.get({"two", "three", "two"}, slowly)) found.push_back(code.get());
  });
  go = true;
  second.join();
  first.join();
  CHECK(found == std::vector<std::string>({"code of two", "code of three", "code of two"}));
  CHECK_EQ(made.load(), 3);
  codes.get({"one"}, slowly);
  CHECK_EQ(made.load(), 3);
  codes.forget("one");
  codes.get({"one"}, slowly);
  CHECK_EQ(made.load(), 4);
}

TEST(a_code_that_could_not_be_made_is_tried_again) {
  CodesInTheMaking codes;
  const auto fails = [](const std::string& name) -> std::string {
    if (name == "bad") throw EngineError("line 7: no such word");
    return "code";
  };
  const auto found = codes.get({"good", "bad"}, fails);
  CHECK(found[0].get() == "code");
  CHECK_THROWS(EngineError, found[1].get());
  const auto again = codes.get({"bad"}, [](const std::string&) { return std::string("mended"); });
  CHECK(again[0].get() == "mended");
}
