// All kernels that lay a matrix out on its GPUs.
#pragma once

#include "cpufree/formats/layout/blocks.hpp"
#include "cpufree/formats/layout/inverse.hpp"
#include "cpufree/formats/layout/plan.hpp"
#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/formats/layout/slices.hpp"
#include "cpufree/formats/layout/windows.hpp"

// X(name of the struct), for each of them: those of rows, of slices, and of a preconditioner.
#define CPUFREE_LAYOUT_ROW_KERNELS(X) \
  X(RebaseRows)                       \
  X(CheckRows)                        \
  X(CheckMirrors)                     \
  X(SumNumbers)                       \
  X(ScanSums)                         \
  X(ScanNumbers)                      \
  X(TakeNumbers)                      \
  X(MarkBoundary)                     \
  X(NumberRows)                       \
  X(ListMarked)                       \
  X(RowLengths)                       \
  X(TakeRows)                         \
  X(InvertOrder)                      \
  X(MoveRows)                         \
  X(FindPartners)                     \
  X(FindSeams)                        \
  X(SortWindows)                      \
  X(CountWindows)                     \
  X(CostSlices)                       \
  X(ListSequence)                     \
  X(EndPieces)                        \
  X(OwnRows)                          \
  X(SurveyBlocks)                     \
  X(MakeKeys)                         \
  X(SortRuns)                         \
  X(MergeRuns)                        \
  X(SizeBlocks)                       \
  X(OrderRows)                        \
  X(MarkPackets)                      \
  X(CountBits)                        \
  X(ListBits)                         \
  X(NameEntries)
#define CPUFREE_LAYOUT_SLICE_KERNELS(X) \
  X(ClearTables)                        \
  X(FindValues)                         \
  X(NumberValues)                       \
  X(ShapeSlices)                        \
  X(CountLanes)                         \
  X(CountRuns)                          \
  X(FillSlices)                         \
  X(FillTails)                          \
  X(FillPrivate)
#define CPUFREE_LAYOUT_INVERSE_KERNELS(X) \
  X(ScaleInverse)                         \
  X(InvertRows)                           \
  X(PackInverse)                          \
  X(SpreadInverse)                        \
  X(SortInverse)
#define CPUFREE_LAYOUT_KERNELS(X) \
  CPUFREE_LAYOUT_ROW_KERNELS(X)   \
  CPUFREE_LAYOUT_SLICE_KERNELS(X) \
  CPUFREE_LAYOUT_INVERSE_KERNELS(X)
