// A team of processes, whose members talk through an object of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/distributed/team.hpp"

namespace cpufree {

// Around an object with the attributes rank and size, and the methods all_gather(what, bytes),
// all_gather(what, bytes, seconds), gather(what, bytes) and exchange(what, list of bytes), which
// return lists of bytes, and fail(message). What all but the last raise passes through.
class [[gnu::visibility("hidden")]] PyTeam final : public Team {
 public:
  explicit PyTeam(nanobind::object team)
      : team_(std::move(team)),
        rank_(nanobind::cast<int>(team_.attr("rank"))),
        size_(nanobind::cast<int>(team_.attr("size"))) {}
  // Systems may be freed by threads that do not hold the GIL.
  ~PyTeam() override {
    const nanobind::gil_scoped_acquire acquire;
    team_.reset();
  }
  PyTeam(const PyTeam&) = delete;
  PyTeam& operator=(const PyTeam&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<Bytes> all_gather(const char* what, std::span<const std::byte> mine) override {
    const nanobind::gil_scoped_acquire acquire;
    return parts_of(team_.attr("all_gather")(what, to_python(mine)));
  }
  std::vector<Bytes> all_gather_within(const char* what, std::span<const std::byte> mine,
                                       double seconds) override {
    const nanobind::gil_scoped_acquire acquire;
    return parts_of(team_.attr("all_gather")(what, to_python(mine), seconds));
  }
  std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) override {
    const nanobind::gil_scoped_acquire acquire;
    return parts_of(team_.attr("gather")(what, to_python(mine)));
  }
  std::vector<Bytes> exchange(const char* what, const std::vector<Bytes>& mine) override {
    const nanobind::gil_scoped_acquire acquire;
    nanobind::list parts;
    for (const Bytes& part : mine) parts.append(to_python(part));
    return parts_of(team_.attr("exchange")(what, parts));
  }
  void give_up(const std::string& message) override {
    const nanobind::gil_scoped_acquire acquire;
    try {
      team_.attr("fail")(message);
    } catch (nanobind::python_error& error) {
      error.discard_as_unraisable("fail");
    }
  }

 private:
  static nanobind::bytes to_python(std::span<const std::byte> data) {
    return nanobind::bytes(data.data(), data.size());
  }
  static std::vector<Bytes> parts_of(const nanobind::object& answer) {
    std::vector<Bytes> all;
    for (const nanobind::handle part : answer) {
      const auto bytes = nanobind::cast<nanobind::bytes>(part);
      const auto* const data = static_cast<const std::byte*>(bytes.data());
      all.emplace_back(data, data + bytes.size());
    }
    return all;
  }

  nanobind::object team_;
  int rank_;
  int size_;
};

inline std::shared_ptr<Team> team_of(const nanobind::object& team) {
  return team.is_none() ? nullptr : std::make_shared<PyTeam>(team);
}

}  // namespace cpufree
