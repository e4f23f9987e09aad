// All kernels that make a hierarchy on a GPU.
#pragma once

#include "cpufree/multigrid/setup/aggregates.hpp"
#include "cpufree/multigrid/setup/inverse.hpp"
#include "cpufree/multigrid/setup/lanczos.hpp"
#include "cpufree/multigrid/setup/places.hpp"
#include "cpufree/multigrid/setup/products.hpp"
#include "cpufree/multigrid/setup/strength.hpp"

// X(name of the struct), for each of them.
#define CPUFREE_MULTIGRID_KERNELS(X) \
  X(InvertRoots)                     \
  X(ScaleRows)                       \
  X(FindStrong)                      \
  X(ListStrong)                      \
  X(FilterDiagonal)                  \
  X(BeginLanczos)                    \
  X(MultiplyLanczos)                 \
  X(StepLanczos)                     \
  X(BeginSet)                        \
  X(SpreadKeys)                      \
  X(DecideKeys)                      \
  X(JoinRoots)                       \
  X(JoinStrongest)                   \
  X(MarkRoots)                       \
  X(NumberRoots)                     \
  X(NumberAggregates)                \
  X(CountProducts)                   \
  X(MultiplyRows)                    \
  X(CountColumns)                    \
  X(SpreadColumns)                   \
  X(TransposeValues)                 \
  X(PlaceRows)                       \
  X(PlaceRowsInSingle)               \
  X(InvertList)                      \
  X(ClearNumbers)                    \
  X(RoundValues)                     \
  X(ShiftBegins)                     \
  X(OrderByLength)                   \
  X(ScaleNamedRows)                  \
  X(PlaceScale)                      \
  X(LengthsOf)                       \
  X(MultiplyVector)                  \
  X(SpreadDense)                     \
  X(InvertBlock)                     \
  X(SetBlockAside)                   \
  X(EliminateBlock)                  \
  X(PlaceInverse)                    \
  X(ScaleColumns)                    \
  X(ScaleEachRow)                    \
  X(InvertScale)
