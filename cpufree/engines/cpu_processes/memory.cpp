#include "cpufree/engines/cpu_processes/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "cpufree/base/error.hpp"

namespace cpufree::cpu_processes {

namespace {

std::string reason() { return std::strerror(errno); }

std::byte* map(int file, std::size_t bytes) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED)
    throw OutOfMemory("the machine has no room to map " + std::to_string(bytes) +
                      " bytes of shared memory (" + reason() + "); use a smaller problem");
  return static_cast<std::byte*>(p);
}

// Whether this is memory that a process of this user has made for itself: no file that has a name,
// no device, nothing that cannot be sealed.
bool is_memory_of_this_user(int file, const struct stat& facts) {
  return S_ISREG(facts.st_mode) && facts.st_nlink == 0 && facts.st_uid == geteuid() &&
         fcntl(file, F_GET_SEALS) >= 0;
}

}  // namespace

Segment Segment::make(std::size_t bytes) {
  Segment segment;
  segment.file_ = memfd_create("cpufree", MFD_CLOEXEC);
  if (segment.file_ < 0) throw EngineError("shared memory cannot be made (" + reason() + ")");
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  // Reserved now: a page that is missing later would end the process without a word.
  int failed = EINTR;
  while (failed == EINTR) failed = posix_fallocate(segment.file_, 0, static_cast<off_t>(size));
  if (failed != 0)
    throw OutOfMemory("the machine has no room for " + std::to_string(size) +
                      " bytes of shared memory (" + std::strerror(failed) +
                      "); use a smaller problem, or a machine with more memory");
  segment.data_ = map(segment.file_, size);
  segment.bytes_ = size;
  return segment;
}

Segment Segment::open(SegmentAddress address, std::size_t bytes) {
  const std::string path =
      "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.file);
  Segment segment;
  segment.file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (segment.file_ < 0)
    throw EngineError("the shared memory " + path + " of another rank cannot be opened (" +
                      reason() +
                      "): all ranks must run on one machine, in one container, as one user");
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  struct stat facts = {};
  if (fstat(segment.file_, &facts) != 0 || !is_memory_of_this_user(segment.file_, facts))
    throw EngineError("what another rank gives as its shared memory, " + path +
                      ", is no memory of a process of this user: all ranks must run as one user, "
                      "and with the same version of cpufree");
  if (static_cast<std::size_t>(facts.st_size) < size)
    throw EngineError("the shared memory " + path + " of another rank has not the " +
                      std::to_string(size) +
                      " bytes expected: do all ranks solve the same system?");
  segment.data_ = map(segment.file_, size);
  segment.bytes_ = size;
  segment.close_to_others();
  return segment;
}

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, bytes_);
  close_to_others();
}

SegmentAddress Segment::address() const { return {getpid(), file_}; }

void Segment::close_to_others() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace cpufree::cpu_processes
