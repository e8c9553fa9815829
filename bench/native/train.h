// A training step: packed sequences forwards and backwards, in micro-batches, one thread's share; and AdamW.
//
// Passes over single tokens go over few rows at a time, so that what lies between two products stays in cache.
#pragma once
#include "attention.h"

// Tokens with what follows each, and its weight in the loss −Σ weight · log p.
struct Sequence {
  std::vector<int> ids, targets;
  std::vector<float> factors;
  std::vector<float> logprobs;
};

struct Saved {
  Buffer x, qkv, out, middle, gateUp, logSums, inverse1, inverse2;
};

// What a thread needs for micro-batches of `most` tokens.
class Trainer {
 public:
  // Of all parameters and, if the embedding is the head too, of the head apart, with its inputs first.
  Buffer gradients;

  Trainer(const Model& model, int most) : gradients(model.size + model.embedding.outputs * model.embedding.inputs), model(model), c(model.config), most(most), saved(c.layers) {
    wide = padded(c.width), wideQkv = padded(3 * c.width), wideGate = padded(2 * c.inner), wideInner = padded(c.inner);
    wideLogits = padded(c.vocabulary);
    for (auto& s : saved) {
      for (Buffer* b : {&s.x, &s.out, &s.middle}) b->resize(most * wide);
      s.qkv.resize(most * wideQkv);
      s.gateUp.resize(most * wideGate);
      s.logSums.resize(static_cast<size_t>(most) * c.heads);
      for (Buffer* b : {&s.inverse1, &s.inverse2}) b->resize(most);
    }
    for (Buffer* b : {&last, &normed, &dx, &scratch, &attended}) b->resize(most * wide);
    inner.resize(most * wideInner);
    inverses.resize(most);
    logits.resize(most * wideLogits);
    tile = std::clamp(TILE_NUMBERS / std::max(2 * c.inner, 3 * c.width) / ROWS, 1, 16) * ROWS;
  }

  float* headGradient() const { return gradients + (c.tied ? model.size : model.ownHead.at); }

  // Adds the head's gradient to the embedding's, if they are one.
  void join() {
    if (!c.tied) return;
    float *to = gradients + model.embedding.at, *from = headGradient();
    for (int token = 0; token < c.vocabulary; token++)
      for (int i = 0; i < c.width; i++)
        to[token * c.width + i] += std::exchange(from[static_cast<long>(i) * c.vocabulary + token], 0.f);
  }

  // Adds the gradients of these sequences, which have at most `most` tokens, and fills in their log-probabilities.
  void learn(Sequence* const* sequences, int count) {
    tokens.clear();
    starts.clear();
    for (int i = 0; i < count; i++) {
      starts.push_back({static_cast<int>(tokens.size()), static_cast<int>(sequences[i]->ids.size())});
      for (size_t t = 0; t < sequences[i]->ids.size(); t++)
        tokens.push_back({sequences[i]->ids[t], sequences[i]->targets[t], static_cast<int>(t), sequences[i]->factors[t],
                          &sequences[i]->logprobs[t]});
    }
    forward();
    score();
    backward();
  }

 private:
  static constexpr int TILE_NUMBERS = 1 << 17;
  struct Token {
    int id, target, position;
    float factor;
    float* logprob;
  };
  struct Span {
    int from, length;
  };
  const Model& model;
  const Config& c;
  const int most;
  long wide, wideQkv, wideGate, wideInner, wideLogits;
  int tile;
  std::vector<Saved> saved;
  Buffer last, normed, dx, scratch, attended, inner, logits, inverses, packing;
  AttentionScratch attention;
  std::vector<Token> tokens;
  std::vector<Span> starts;

  template <class F>
  void tiles(F f) {
    const int n = static_cast<int>(tokens.size()), count = (n + tile - 1) / tile;
    for (int i = 0; i < count; i++) {
      const int from = static_cast<int>(static_cast<long>(n) * i / count);
      f(from, static_cast<int>(static_cast<long>(n) * (i + 1) / count) - from);
    }
  }
  float* row(const Buffer& b, int at, long step) { return b.data + at * step; }
  float* stateAfter(size_t l) { return l + 1 < saved.size() ? saved[l + 1].x.data : last.data; }
  Head headOf(Saved& s, const Span& span, int head) {
    const int size = c.headSize();
    float* q = row(s.qkv, span.from, wideQkv) + head * size;
    return {span.length, size, q, q + c.width, q + 2 * c.width, wideQkv, row(s.out, span.from, wide) + head * size,
            wide, s.logSums + static_cast<long>(head) * most + span.from};
  }

  void forward() {
    for (size_t t = 0; t < tokens.size(); t++)
      memcpy(row(saved[0].x, t, wide), model.weight(model.embedding.at) + static_cast<long>(tokens[t].id) * c.width,
             c.width * sizeof(float));
    for (size_t l = 0; l < saved.size(); l++) {
      Saved& s = saved[l];
      const Layer& w = model.layers[l];
      tiles([&](int from, int n) {
        for (int t = from; t < from + n; t++)
          s.inverse1[t] = rmsNorm(c.width, row(s.x, t, wide), model.weight(w.norm1), row(normed, t - from, wide));
        float* qkv = row(s.qkv, from, wideQkv);
        multiply(n, 3 * c.width, c.width, normed, wide, w.qkv.forward, qkv, wideQkv);
        for (int t = 0; t < n; t++) rotate(model, tokens[from + t].position, 2 * c.heads, qkv + t * wideQkv, 1);
      });
      for (const Span& span : starts)
        for (int head = 0; head < c.heads; head++) attend(headOf(s, span, head), attention);
      float* next = stateAfter(l);
      tiles([&](int from, int n) {
        float *x = row(s.x, from, wide), *middle = row(s.middle, from, wide), *gate = row(s.gateUp, from, wideGate);
        multiply(n, c.width, c.width, row(s.out, from, wide), wide, w.out.forward, middle, wide, x, wide);
        for (int t = 0; t < n; t++)
          s.inverse2[from + t] = rmsNorm(c.width, middle + t * wide, model.weight(w.norm2), row(normed, t, wide));
        multiply(n, 2 * c.inner, c.width, normed, wide, w.gateUp.forward, gate, wideGate);
        for (int t = 0; t < n; t++) swiglu(c.inner, gate + t * wideGate, gate + t * wideGate + c.inner, row(inner, t, wideInner));
        multiply(n, c.width, c.inner, inner, wideInner, w.down.forward, next + from * wide, wide, middle, wide);
      });
    }
  }

  // Log-probabilities, and the gradients of the head and of the last state.
  void score() {
    const int n = static_cast<int>(tokens.size()), vocabulary = c.vocabulary;
    const Matrix& head = model.head();
    for (int t = 0; t < n; t++)
      inverses[t] = rmsNorm(c.width, row(last, t, wide), model.weight(model.finalNorm), row(normed, t, wide));
    tiles([&](int from, int count) {
      float* rows = row(logits, from, wideLogits);
      multiply(count, vocabulary, c.width, row(normed, from, wide), wide, head.forward, rows, wideLogits);
      for (int t = from; t < from + count; t++, rows += wideLogits) {
        Token& token = tokens[t];
        const float chosen = rows[token.target];
        const float logSum = softmax(vocabulary, vocabulary, rows);
        *token.logprob = chosen - logSum;
        const __m512 factor = _mm512_set1_ps(token.factor);
        lanes(vocabulary, [&](int i, __mmask16 m) {
          _mm512_mask_storeu_ps(rows + i, m, _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(m, rows + i)));
        });
        rows[token.target] -= token.factor;
      }
      multiply(count, c.width, vocabulary, row(logits, from, wideLogits), wideLogits, head.backward, row(attended, from, wide),
               wide);
    });
    multiplyTall(c.width, vocabulary, n, normed, wide, logits, wideLogits, headGradient(), vocabulary, packing);
    memset(dx, 0, n * wide * sizeof(float));
    for (int t = 0; t < n; t++)
      rmsNormBackward(c.width, row(last, t, wide), model.weight(model.finalNorm), inverses[t], row(attended, t, wide),
                      row(dx, t, wide), gradients + model.finalNorm, row(normed, t, wide));
  }

  void backward() {
    const int n = static_cast<int>(tokens.size());
    for (size_t l = saved.size(); l-- > 0;) {
      Saved& s = saved[l];
      const Layer& w = model.layers[l];
      tiles([&](int from, int count) {
        float *to = row(dx, from, wide), *gate = row(s.gateUp, from, wideGate), *h = row(inner, from, wideInner);
        multiply(count, c.inner, c.width, to, wide, w.down.backward, h, wideInner);
        for (int t = 0; t < count; t++)
          swigluBackward(c.inner, gate + t * wideGate, gate + t * wideGate + c.inner, h + t * wideInner);
      });
      multiplyTall(c.width, c.inner, n, dx, wide, inner, wideInner, gradients + w.down.at, c.inner, packing);
      tiles([&](int from, int count) {
        multiply(count, c.width, 2 * c.inner, row(s.gateUp, from, wideGate), wideGate, w.gateUp.backward, scratch, wide);
        for (int t = from; t < from + count; t++)
          rmsNormBackward(c.width, row(s.middle, t, wide), model.weight(w.norm2), s.inverse2[t], row(scratch, t - from, wide),
                          row(dx, t, wide), gradients + w.norm2, row(normed, t, wide));
        multiply(count, c.width, c.width, row(dx, from, wide), wide, w.out.backward, row(attended, from, wide), wide);
      });
      multiplyTall(c.width, 2 * c.inner, n, normed, wide, s.gateUp, wideGate, gradients + w.gateUp.at, 2 * c.inner, packing);
      multiplyTall(c.width, c.width, n, s.out, wide, dx, wide, gradients + w.out.at, c.width, packing);
      for (const Span& span : starts)
        for (int head = 0; head < c.heads; head++)
          attendBackward(headOf(s, span, head), row(attended, span.from, wide) + head * c.headSize(), wide, attention);
      tiles([&](int from, int count) {
        float* qkv = row(s.qkv, from, wideQkv);
        for (int t = 0; t < count; t++) rotate(model, tokens[from + t].position, 2 * c.heads, qkv + t * wideQkv, -1);
        multiply(count, c.width, 3 * c.width, qkv, wideQkv, w.qkv.backward, scratch, wide);
        for (int t = from; t < from + count; t++)
          rmsNormBackward(c.width, row(s.x, t, wide), model.weight(w.norm1), s.inverse1[t], row(scratch, t - from, wide),
                          row(dx, t, wide), gradients + w.norm1, row(normed, t, wide));
      });
      multiplyTall(c.width, 3 * c.width, n, normed, wide, s.qkv, wideQkv, gradients + w.qkv.at, 3 * c.width, packing);
    }
    for (int t = 0; t < n; t++) {
      float* to = gradients + model.embedding.at + static_cast<long>(tokens[t].id) * c.width;
      const float* from = row(dx, t, wide);
      for (int i = 0; i < c.width; i++) to[i] += from[i];
    }
  }
};

struct AdamOptions {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0.01f;
};

// AdamW from `from` to `to`; adds the gradients of all threads first and clears them.
inline void adamW(Model& model, const std::vector<float*>& gradients, size_t from, size_t to, const AdamOptions& o) {
  const float rate = o.rate / (1 - std::pow(o.beta1, model.steps)), root = std::sqrt(1 - std::pow(o.beta2, model.steps));
  const __m512 b1 = _mm512_set1_ps(o.beta1), b2 = _mm512_set1_ps(o.beta2);
  const __m512 n1 = _mm512_set1_ps(1 - o.beta1), n2 = _mm512_set1_ps(1 - o.beta2);
  for (size_t i = from; i < to; i += LANES) {
    const __mmask16 m = laneMask(static_cast<int>(std::min<size_t>(to - i, LANES)));
    __m512 g = _mm512_setzero_ps();
    for (float* one : gradients) {
      g = _mm512_add_ps(g, _mm512_maskz_loadu_ps(m, one + i));
      _mm512_mask_storeu_ps(one + i, m, _mm512_setzero_ps());
    }
    const __m512 first = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, model.first + i), b1, _mm512_mul_ps(g, n1));
    const __m512 second =
        _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, model.second + i), b2, _mm512_mul_ps(_mm512_mul_ps(g, g), n2));
    const __m512 below = _mm512_fmadd_ps(_mm512_sqrt_ps(second), _mm512_set1_ps(1 / root), _mm512_set1_ps(o.epsilon));
    const __m512 w = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, model.weights + i), _mm512_set1_ps(1 - o.rate * o.decay));
    _mm512_mask_storeu_ps(model.first + i, m, first);
    _mm512_mask_storeu_ps(model.second + i, m, second);
    _mm512_mask_storeu_ps(model.weights + i, m,
                          _mm512_sub_ps(w, _mm512_div_ps(_mm512_mul_ps(first, _mm512_set1_ps(rate)), below)));
  }
}
