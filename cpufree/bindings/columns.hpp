// Several right-hand sides between Python and a System.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "cpufree/bindings/argument.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// What Python gives: lists of vectors; None: no guesses, new arrays for the solutions.
struct [[gnu::visibility("hidden")]] ColumnObjects {
  nanobind::object b, x0, out;
};

// The vectors of a list, each an argument of its own.
template <class T>
std::vector<Argument<T>> arguments_of(const nanobind::object& vectors, const char* name) {
  std::vector<Argument<T>> all;
  if (vectors.is_none()) return all;
  const auto list = nanobind::cast<nanobind::list>(vectors);
  all.reserve(list.size());
  for (const nanobind::handle vector : list)
    all.emplace_back(nanobind::borrow<nanobind::object>(vector), name);
  return all;
}

// describe(result, x) of each column.
template <class T, class F>
nanobind::list solve_columns_with(System<T>& system, const ColumnObjects& given,
                                  const SolveSpec& spec, const Progress& progress, F&& describe) {
  const auto rights = arguments_of<const T>(given.b, "b");
  const auto guesses = arguments_of<const T>(given.x0, "x0");
  const auto targets = arguments_of<T>(given.out, "out");
  ColumnViews<T> views;
  for (const auto& right : rights) views.b.push_back(right.view);
  for (const auto& guess : guesses) views.x0.push_back(guess.view);
  for (const auto& target : targets) views.out.push_back(target.view);
  std::vector<nanobind::object> x(rights.size(), nanobind::none());
  for (std::size_t k = 0; given.out.is_none() && k < x.size(); ++k) {
    require(views.b[k].on_host(), "b lies on a GPU: give out, arrays there for the solutions");
    auto array = new_numpy<T>(static_cast<std::size_t>(system.rows()));
    views.out.push_back({array.data(), array.size()});
    x[k] = nanobind::cast(array);
  }
  std::vector<SolveResult> results;
  {
    const nanobind::gil_scoped_release release;
    results = system.solve_columns(views, spec, progress);
  }
  nanobind::list all;
  for (std::size_t k = 0; k < results.size(); ++k)
    all.append(describe(std::move(results[k]), x[k]));
  return all;
}

}  // namespace cpufree
