// A system for the kernels of cg.cuh on the host: its parts for each PE, and the memory they need.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ablations {

// CSR, symmetric, with 32-bit indices.
struct System {
  std::vector<int> first, column;
  std::vector<double> value, b;
  int rows() const { return static_cast<int>(first.size()) - 1; }
};

// Reads arrays as NumPy's tofile writes them: first.bin, column.bin, value.bin, b.bin.
template <class T>
std::vector<T> read_array(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    std::exit(2);
  }
  std::fseek(file, 0, SEEK_END);
  std::vector<T> found(static_cast<std::size_t>(std::ftell(file)) / sizeof(T));
  std::rewind(file);
  const std::size_t read = std::fread(found.data(), sizeof(T), found.size(), file);
  std::fclose(file);
  if (read != found.size()) std::exit(2);
  return found;
}
inline System read_system(const std::string& folder) {
  return {read_array<int>(folder + "/first.bin"), read_array<int>(folder + "/column.bin"),
          read_array<double>(folder + "/value.bin"), read_array<double>(folder + "/b.bin")};
}

// Lanes that multiply a row: a power of two, the least so that none has more than four entries of a
// mean row, which it asks for at once.
inline int row_lanes(const System& a) {
  int lanes = 1;
  while (lanes < 32 && 4LL * lanes * a.rows() < a.first.back()) lanes *= 2;
  return lanes;
}

// The rows of one PE, by equal entries, and which of their values other PEs read.
struct Part {
  int begin, end;
  std::vector<int> first;  // from 0
  std::vector<unsigned char> wanted;
};
inline std::vector<int> cuts(const System& a, int pes) {
  std::vector<int> found{0};
  for (int pe = 1; pe < pes; ++pe) {
    const long long goal = static_cast<long long>(a.first.back()) * pe / pes;
    const auto at = std::lower_bound(a.first.begin(), a.first.end(), static_cast<int>(goal));
    found.push_back(std::max(found.back(), static_cast<int>(at - a.first.begin())));
  }
  found.push_back(a.rows());
  return found;
}
inline std::vector<Part> parts(const System& a, const std::vector<int>& cut) {
  const int pes = static_cast<int>(cut.size()) - 1;
  std::vector<unsigned char> wanted(static_cast<std::size_t>(a.rows()), 0);
  for (int pe = 0; pe < pes; ++pe)
    for (int k = a.first[cut[pe]]; k < a.first[cut[pe + 1]]; ++k)
      if (a.column[k] < cut[pe] || a.column[k] >= cut[pe + 1])
        wanted[a.column[k]] |= static_cast<unsigned char>(1U << pe);
  std::vector<Part> found;
  for (int pe = 0; pe < pes; ++pe) {
    Part part{cut[pe], cut[pe + 1], {}, {}};
    for (int i = part.begin; i <= part.end; ++i)
      part.first.push_back(a.first[i] - a.first[part.begin]);
    part.wanted.assign(wanted.begin() + part.begin, wanted.begin() + part.end);
    found.push_back(std::move(part));
  }
  return found;
}

// Iterations of CG on the host; returns the norm of the recurrences' residual.
inline double reference(const System& a, int iterations) {
  const auto n = static_cast<std::size_t>(a.rows());
  std::vector<double> r = a.b, p = r, s(n);
  const auto dot = [n](const std::vector<double>& u, const std::vector<double>& v) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += u[i] * v[i];
    return sum;
  };
  double rr = dot(r, r);
  for (int k = 0; k < iterations && rr > 0; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      s[i] = 0;
      for (int e = a.first[i]; e < a.first[i + 1]; ++e) s[i] += a.value[e] * p[a.column[e]];
    }
    const double alpha = rr / dot(p, s);
    for (std::size_t i = 0; i < n; ++i) r[i] -= alpha * s[i];
    const double next = dot(r, r), beta = next / rr;
    rr = next;
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + beta * p[i];
  }
  return std::sqrt(rr);
}

// ‖b - A x‖.
inline double residual(const System& a, const std::vector<double>& x,
                       const std::vector<double>& b) {
  double sum = 0;
  for (int i = 0; i < a.rows(); ++i) {
    double r = b[i];
    for (int e = a.first[i]; e < a.first[i + 1]; ++e) r -= a.value[e] * x[a.column[e]];
    sum += r * r;
  }
  return std::sqrt(sum);
}

}  // namespace ablations
