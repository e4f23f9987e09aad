// The GPU engine's System: one persistent kernel on each GPU, launched together.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/systems/columns.hpp"
#include "cpufree/systems/distributed/gather.hpp"
#include "cpufree/systems/factor_layout.hpp"
#include "cpufree/systems/gpu/heaps.hpp"
#include "cpufree/systems/gpu/kernels/remote.hpp"
#include "cpufree/systems/gpu/layout/layouts.hpp"
#include "cpufree/systems/gpu/run.hpp"
#include "cpufree/systems/gpu/share_layout.hpp"
#include "cpufree/systems/gpu/transfer.hpp"
#include "cpufree/systems/gpu/upload.hpp"
#include "cpufree/systems/heap.hpp"
#include "cpufree/systems/scaling.hpp"
#include "cpufree/systems/setup.hpp"
#include "cpufree/systems/system.hpp"

namespace cpufree {

template <class T>
class GpuSystem final : public System<T> {
 public:
  GpuSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
            std::span<const std::int32_t> order, const SystemSpec& spec);
  // Laid out by the GPU, wherever its rows lie. For one PE.
  GpuSystem(const GivenCsr<T>& matrix, const SystemSpec& spec);
  GpuSystem(SlabPlan<T> slab, const SystemSpec& spec);
  ~GpuSystem() override;

  using System<T>::solve;
  std::int32_t rows() const override { return rows_; }
  const PlanReport& plan() const override { return report_; }
  SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                    const SolveSpec& spec, const Progress& progress) override;
  std::vector<SolveResult> solve_columns(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                         const Progress& progress) override;
  std::string refuses_columns() const override;
  bool update(const CsrView<T>& matrix) override;
  bool usable() const override { return usable_; }
  // What has been made of the matrix of PE k of this process, addresses apart: for tests.
  std::vector<std::vector<std::byte>> matrix_arrays(std::size_t k) const;

 private:
  using Matrix = WarpSlices<T>;
  template <class U>
  using Array = gpu::DeviceArray<U>;

  // A factor of a PE's preconditioner, and where each block's part begins: slices, rows, values,
  // narrow and wide columns.
  struct DeviceFactor {
    DeviceFactor(int device, const std::vector<SlicedFactor>& blocks);
    FactorSlices view(std::size_t block) const;
    Array<FactorSlice> slice;
    Array<std::int32_t> row;
    Array<float> value;
    Array<std::uint16_t> narrow;
    Array<std::int32_t> wide;
    std::vector<std::array<std::size_t, 5>> first;
    std::vector<std::int32_t> counts;
  };
  struct PeFactorsOnGpu {
    std::vector<DeviceFactor> factor;
    Array<std::int32_t> partners;
    Array<T> scale;
    std::array<Array<T>, 2> operand;
    Array<FactorShare<T>> shares;
  };

  // One GPU's memory.
  struct Pe {
    std::int32_t rows = 0;
    std::int32_t interior = 0;
    std::int64_t private_rows = 0;
    Array<std::byte> bytes;  // of the slices
    Array<WarpSlice> slices;
    Array<std::int64_t> tail_ptr;
    Array<std::int32_t> tail_col;
    Array<T> tail_val, dictionary;
    Array<FeedItem> feed;             // chunks, block after block
    Array<std::uint32_t> feed_first;  // warps + 1 of each block
    Array<std::int32_t> partners;     // notify, await and await_local of all blocks
    Array<std::int64_t> send_ptr;
    Array<Destination> destinations;
    Array<std::int32_t> source, global_row;
    Array<std::int32_t> names;  // of a slab's rows (row_names), once they are needed
    RemoteTables remote;        // where there are several nodes
    Array<BlockShare<Matrix>> shares;
    PeFactorsOnGpu factors;
    Array<Split> splits;                            // of the blocks, once they have been asked for
    std::array<Array<T>, kPrivateVectors> vectors;  // in the order of `each_private`
  };

  // Memory for so many right-hand sides together, once they have been asked for.
  struct ColumnsMemory {
    std::size_t columns = 0;
    ColumnsHeap<T> heap;
    std::unique_ptr<GpuHeaps> heaps;
    std::vector<std::array<Array<T>, 4>> vectors;  // of each PE: x, r, s, b
    std::vector<Array<std::int32_t>> first_ghost;  // of all PEs, on each
    Array<Outcome> outcomes;                       // of PE 0, as the histories are
    Array<double> history;
  };

  // All that is on the GPUs, so that it can be freed in one go.
  struct Device {
    Device(const std::vector<int>& devices, int blocks)
        : pes(devices.size()), runner(devices, blocks), args(devices.size()) {}
    std::vector<Pe> pes;  // of this process
    std::unique_ptr<GpuHeaps> heaps;
    GpuRunner runner;
    std::vector<RemoteSolveArgs<Matrix>> args;
    Array<Outcome> outcome;  // of PE 0, as the history is
    Array<double> history;
    std::unique_ptr<GpuTransfer<T>> transfer;
    ColumnsMemory columns;
  };

  // A kernel and what it keeps on chip.
  struct Choice {
    GpuKernel kernel;
    Residency residency;
  };

  // What depends on values, beside the slices and the diagonal.
  struct BesideSlices {
    std::vector<std::int32_t> tail_col;
    std::vector<T> tail_val, dictionary;
  };

  // What an update needs of the set-up: the plan without values, and how it has been laid out.
  struct Kept {
    HaloPlan<T> plan;
    std::vector<PeLayout> layouts;
    SystemSpec spec;
  };

  // The rows of the blocks of the PEs here; most packets of a PE, and who sends each.
  struct Sharing {
    std::vector<std::vector<BlockPlan>> plans;
    std::size_t packets = 0;
    std::vector<std::vector<std::int32_t>> sources;
  };

  GpuSystem(std::int64_t rows, std::int64_t all_rows, const SystemSpec& spec);
  void set_up(HaloPlan<T>& plan, std::span<const std::int32_t> order, const SystemSpec& spec);
  std::vector<std::int64_t> cuts_for_gpus(const CsrView<T>& matrix,
                                          std::span<const std::int32_t> part,
                                          std::span<const std::int32_t> order,
                                          const SystemSpec& spec) const;
  void require_made_of_rows(const SystemSpec& spec) const;
  void set_up_sent(const CsrView<T>& matrix, std::vector<std::int64_t> cuts,
                   const SystemSpec& spec);
  template <class F>
  void set_up_on_gpus(F&& rows, bool runs_likely, const SystemSpec& spec);
  HaloPlan<T> plan_on_gpus(std::vector<GpuRows<T>> rows, const SystemSpec& spec);
  std::vector<PeLayout> shares_laid_out(const HaloPlan<T>& plan,
                                        const std::vector<std::vector<BlockPlan>>& plans,
                                        const LayoutOptions& options);
  void choose_nodes(const SystemSpec& spec, std::int64_t all_rows);
  void plan_nodes(HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans, Extent& extent);
  void choose_blocks(const SystemSpec& spec, const Extent& extent);
  int default_blocks(const Extent& extent);
  Sharing share_out(HaloPlan<T>& plan, std::span<const std::int32_t> order, const Shares& shares,
                    const SystemSpec& spec);
  std::optional<Sharing> share_with_block_halos(HaloPlan<T>& plan,
                                                std::span<const std::int32_t> order,
                                                const Shares& shares, const SystemSpec& spec);
  bool should_share_rows(const std::vector<ShareSize>& sizes, const SystemSpec& spec) const;
  std::vector<PeLayout> lanes_log2(std::vector<PeLayout> layouts, const HaloPlan<T>& plan,
                                   const std::vector<std::vector<BlockPlan>>& plans,
                                   LayoutOptions options, const SystemSpec& spec);
  // Layouts for kernels of simple shares on chip alone, and what the busiest warp sums.
  struct OnChip {
    std::vector<PeLayout> layouts;
    std::int32_t busiest = 0;
    std::int32_t lanes_log2 = 0;
  };
  std::optional<OnChip> lay_out_on_chip(const HaloPlan<T>& plan,
                                        const std::vector<std::vector<BlockPlan>>& plans,
                                        const SystemSpec& spec);
  std::vector<PeLayout> take(OnChip simple);
  struct MatrixSize {
    std::int64_t rows = 0, entries = 0;
  };
  MatrixSize matrix_size() const {
    MatrixSize all;
    for (const PlanReport::Pe& pe : report_.pes) all.rows += pe.rows, all.entries += pe.nnz;
    return all;
  }
  bool has_on_chip_kernels() const;
  bool may_stay_on_chip() const;
  bool stays_on_chip(const std::vector<ShareSize>& sizes, bool operands = false) const;
  std::int32_t busiest_of(const std::vector<PeLayout>& layouts) const;
  void build(HaloPlan<T>& plan, std::span<const std::int32_t> order, const SystemSpec& spec);
  void upload(HaloPlan<T>& plan, const std::vector<PeLayout>& layouts, const Sharing& sharing,
              const SystemSpec& spec);
  std::vector<ShareSize> sizes_in_all(const std::vector<PeLayout>& layouts) const;
  std::vector<PeLayout> lay_out(const HaloPlan<T>& plan,
                                const std::vector<std::vector<BlockPlan>>& plans,
                                const SystemSpec& spec);
  std::vector<PeLayout> choose_layouts(const HaloPlan<T>& plan,
                                       const std::vector<std::vector<BlockPlan>>& plans,
                                       const SystemSpec& spec);
  std::byte* heap_of(std::size_t k) const {
    return device_->heaps->base(own_.first + static_cast<int>(k));
  }
  std::vector<std::vector<T>> invert_diagonals(const HaloPlan<T>& plan,
                                               const std::vector<PeLayout>& layouts);
  void upload_pe(std::size_t k, const LocalSystem<T>& local, const PeLayout& layout,
                 const std::vector<std::int32_t>& sources, const std::vector<T>& inverse);
  void upload_shapes(Pe& pe, int device, const LocalSystem<T>& local, const PeLayout& layout);
  std::vector<std::size_t> upload_feeds(Pe& pe, int device, const PeLayout& layout);
  static BesideSlices beside_slices(const LocalSystem<T>& local, const PeLayout& layout);
  void upload_shares(std::size_t k, const PeLayout& layout);
  void upload_slice_table(Pe& pe, int device, const PeLayout& layout);
  void upload_links(std::size_t k, const LocalSystem<T>& local, const PeLayout& layout,
                    const std::vector<std::int32_t>& sources);
  void upload_made(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts,
                   const Sharing& sharing);
  void fill_made(const std::vector<PeLayout>& layouts);
  void make_transfer();
  void make_factors(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts);
  void upload_factors(std::size_t k, const PeFactors<T>& factors, const PeLayout& layout);
  void keep_for_update(HaloPlan<T>& plan, std::vector<PeLayout> layouts, const SystemSpec& spec);
  bool update_kept(const CsrView<T>& matrix);
  bool update_made(const CsrView<T>& matrix);
  std::optional<std::vector<PeLayout>> lay_out_again();
  void write_values(const std::vector<PeLayout>& layouts,
                    const std::vector<std::vector<T>>& inverse);
  void finish_report(const std::vector<PeLayout>& layouts);

  Wanted wanted(const SolveSpec& spec) const;
  GpuKernels kernels_of(const SolveSpec& spec, bool runs) const;
  const Choice& choice_for(const SolveSpec& spec);
  void reserve(const SolveSpec& spec, const SolveParams& params);
  double load(VectorView<const T> b, VectorView<const T> x0, bool& has_guess);
  void set_arguments(const SolveSpec& spec, const SolveParams& params, const Residency& residency);
  std::vector<const void*> arguments() const;
  std::vector<gpu_p2p::Shared> shared() const;
  void fetch(const SolveSpec& spec, SolveResult& result) const;
  bool store(VectorView<T> out, double scale, const SolveSpec& spec, SolveResult& result);
  std::vector<PrivateVector<T>> private_vector(std::size_t index) const;

  void reserve_columns(std::size_t columns, std::size_t histories);
  void allocate_columns(std::size_t columns);
  std::vector<double> load_columns(const ColumnViews<T>& from);
  template <int K>
  std::vector<ColumnsArgs<Matrix, K>> columns_arguments(const SolveSpec& spec, bool guess,
                                                        std::span<const double> scale);
  template <int K>
  std::vector<SolveResult> solve_together(const ColumnViews<T>& vectors, const SolveSpec& spec,
                                          const Progress& progress);
  bool store_column(std::size_t k, std::size_t columns, VectorView<T> out, double scale);

  std::mutex busy_;             // held while a solve runs
  bool usable_ = true;          // false: an update has ended in the middle
  LapTimer timer_;              // of the set-up
  std::int32_t rows_ = 0;       // of its vectors
  std::int64_t first_row_ = 0;  // of a slab, in the matrix
  std::shared_ptr<Team> team_;  // none: all PEs are in this process
  OwnPes own_;
  NodeTable nodes_;
  std::vector<RemotePlan> far_;  // of the PEs of this process, where there are several nodes
  FactorSpec factor_spec_;
  std::string nvshmem_kernels_;         // the file of kernels that call NVSHMEM
  std::optional<Gathering> gathering_;  // with a team, where vectors are those of all rows
  std::vector<int> devices_;            // of the PEs of this process
  int blocks_ = 1;
  int threads_ = 0;
  int residency_mode_ = -1;
  int ring_slots_ = -1;
  int keep_ = -1;
  bool lanes_share_rows_ =
      false;              // lanes share rows: the matrix comes through rings, or stays on chip
  bool on_chip_ = false;  // where it does, kernels for simple shares on chip alone read it
  bool block_halos_ = false;
  std::vector<SharedNames> names_;  // while layouts are chosen, with halos of blocks
  PlanReport report_;
  double lambda_bound_ = 0.0;
  double bytes_of_pe_ = 0.0;  // of the matrix
  PrivateIndex index_ = private_index();
  std::vector<ShareSize> sizes_;  // of all blocks

  std::optional<Kept> kept_;             // none: of a slab
  std::unique_ptr<GpuLayouts<T>> made_;  // while GPUs lay rows out
  std::vector<std::int64_t> cuts_;       // where PEs' rows begin; empty: the host has done so
  std::uint64_t pattern_ = 0;            // of the matrix, if they have
  std::optional<EntryReport> entries_;   // what they have found, if they were asked to
  double mean_distance_ = 0.0;           // likewise

  Extent extent_;
  std::size_t packets_ = 0;  // of a PE, for one vector
  Heap<T> heap_;
  std::unique_ptr<Device> device_;
  // Made when first needed.
  std::map<std::tuple<Method, Preconditioner, Study>, Choice> choices_;
};

}  // namespace cpufree
