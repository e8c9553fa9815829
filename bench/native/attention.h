// Causal attention of one head over one sequence, forwards and backwards. Scores exist for 14 queries at a time, and
// backwards for one sequence.
#pragma once
#include "model.h"

struct AttentionScratch {
  Buffer keys, values, queries, scores, weights, toScores;
};

struct Head {
  int length, size;
  // Queries, keys, values (rows `step` apart) and the result (rows `stepOut` apart).
  float *q, *k, *v;
  long step;
  float* out;
  long stepOut;
  // log Σ exp of each query's scores.
  float* logSums;
  float scale() const { return 1 / std::sqrt(static_cast<float>(size)); }
};

inline void attend(const Head& h, AttentionScratch& s) {
  const int length = h.length, size = h.size, ld = padded(panels(length) * COLUMNS);
  s.keys.resize(static_cast<size_t>(panels(length)) * size * COLUMNS);
  s.values.resize(static_cast<size_t>(panels(size)) * length * COLUMNS);
  s.scores.resize(static_cast<size_t>(ROWS) * ld);
  packTransposed(length, size, h.k, h.step, s.keys);
  pack(length, size, h.v, h.step, s.values);
  const Blocks blocks(length);
  for (int b = 0; b < blocks.count; b++) {
    const int from = blocks.begin(b), to = blocks.begin(b + 1);
    for (int p = 0; p < panels(to); p++)
      block<false>(to - from, COLUMNS, size, h.q + from * h.step, h.step, s.keys + static_cast<long>(p) * size * COLUMNS,
                   COLUMNS, s.scores + p * COLUMNS, ld, h.scale());
    for (int i = from; i < to; i++) h.logSums[i] = softmax(i + 1, to, s.scores + static_cast<long>(i - from) * ld);
    for (int p = 0; p < panels(size); p++)
      block<false>(to - from, size - p * COLUMNS, to, s.scores, ld, s.values + static_cast<long>(p) * length * COLUMNS,
                   COLUMNS, h.out + from * h.stepOut + p * COLUMNS, h.stepOut);
  }
}

// `toOut` has the result's gradient; those of queries, keys and values take their places.
inline void attendBackward(const Head& h, const float* toOut, long stepTo, AttentionScratch& s) {
  const int length = h.length, size = h.size, ld = padded(panels(length) * COLUMNS);
  const size_t across = static_cast<size_t>(panels(length)) * size * COLUMNS;
  const size_t along = static_cast<size_t>(panels(size)) * length * COLUMNS;
  s.keys.resize(across + along);
  s.values.resize(across);
  s.queries.resize(along);
  s.weights.resize(static_cast<size_t>(length) * ld);
  s.toScores.resize(static_cast<size_t>(length) * ld);
  float* plainKeys = s.keys + across;
  packTransposed(length, size, h.k, h.step, s.keys);
  packTransposed(length, size, h.v, h.step, s.values);
  pack(length, size, h.k, h.step, plainKeys);
  pack(length, size, h.q, h.step, s.queries);
  const Blocks blocks(length);
  const __m512 scale = _mm512_set1_ps(h.scale());
  for (int b = 0; b < blocks.count; b++) {
    const int from = blocks.begin(b), to = blocks.begin(b + 1);
    float *weights = s.weights + static_cast<long>(from) * ld, *toScores = s.toScores + static_cast<long>(from) * ld;
    for (int p = 0; p < panels(to); p++) {
      const long panel = static_cast<long>(p) * size * COLUMNS;
      block<false>(to - from, COLUMNS, size, h.q + from * h.step, h.step, s.keys + panel, COLUMNS, weights + p * COLUMNS, ld,
                   h.scale());
      block<false>(to - from, COLUMNS, size, toOut + from * stepTo, stepTo, s.values + panel, COLUMNS, toScores + p * COLUMNS, ld);
    }
    for (int i = from; i < to; i++) {
      float *w = weights + static_cast<long>(i - from) * ld, *t = toScores + static_cast<long>(i - from) * ld;
      __m512 dot = _mm512_setzero_ps();
      lanes(size, [&](int at, __mmask16 m) {
        dot = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, toOut + i * stepTo + at),
                              _mm512_maskz_loadu_ps(m, h.out + i * h.stepOut + at), dot);
      });
      const __m512 inner = _mm512_set1_ps(sumOf(dot)), logSum = _mm512_set1_ps(h.logSums[i]);
      // Behind the query itself, up to the block's end, both are zero.
      lanes(to, [&](int at, __mmask16) {
        const __mmask16 m = laneMask(i + 1 - at);
        const __m512 e =
            _mm512_maskz_mov_ps(m, exponential(_mm512_sub_ps(_mm512_loadu_ps(w + at), logSum)));
        const __m512 d = _mm512_mul_ps(_mm512_mul_ps(e, scale), _mm512_sub_ps(_mm512_loadu_ps(t + at), inner));
        _mm512_storeu_ps(w + at, e);
        _mm512_storeu_ps(t + at, _mm512_maskz_mov_ps(m, d));
      });
    }
    for (int p = 0; p < panels(size); p++)
      block<false>(to - from, size - p * COLUMNS, to, toScores, ld, plainKeys + static_cast<long>(p) * length * COLUMNS,
                   COLUMNS, h.q + from * h.step + p * COLUMNS, h.step);
  }
  for (int b = 0; b < blocks.count; b++) {
    const int from = blocks.begin(b), to = blocks.begin(b + 1);
    for (int p = 0; p < panels(size); p++) {
      const long panel = (static_cast<long>(p) * length + from) * COLUMNS, at = from * h.step + p * COLUMNS;
      const long corner = static_cast<long>(from) * ld + from;
      block<true>(to - from, size - p * COLUMNS, length - from, s.weights + corner, ld, toOut + from * stepTo + p * COLUMNS, stepTo, h.v + at,
                  h.step);
      block<true>(to - from, size - p * COLUMNS, length - from, s.toScores + corner, ld, s.queries + panel, COLUMNS, h.k + at,
                  h.step);
    }
  }
}
