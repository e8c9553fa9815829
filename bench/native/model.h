// The model's weights, packed for products, and the passes over one token's numbers.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "matrix.h"

struct Config {
  int width, layers, heads, inner, vocabulary;
  bool tied;
  int headSize() const { return width / heads; }
};

constexpr float EPSILON = 1e-6f;
constexpr double THETA = 10000;
constexpr int MAX_CONTEXT = 1024;

inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-87.f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f, 1.f, 1.f})
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
  return _mm512_scalef_ps(p, n);
}

// A weight inside the flat array of all parameters, and its packings for what products multiply by it. Gradients are
// fastest with the larger side last, so that only embedding and down are stored as in a checkpoint, [outputs, inputs].
struct Matrix {
  int inputs = 0, outputs = 0;
  size_t at = 0;
  bool outputsFirst = false;
  Buffer forward, backward;
};

// qkv and gateUp hold several of a checkpoint's weights, side by side.
struct Layer {
  size_t norm1 = 0, norm2 = 0;
  Matrix qkv, out, gateUp, down;
};

struct Model {
  Config config;
  size_t size = 0, finalNorm = 0;
  Matrix embedding, ownHead;
  std::vector<Layer> layers;
  Buffer weights, first, second, cosines, sines;
  int steps = 0;

  explicit Model(const Config& c) : config(c), layers(c.layers) {
    auto vector = [&](int n) { return std::exchange(size, size + n); };
    auto matrix = [&](Matrix& m, int inputs, int outputs, bool outputsFirst = false) {
      m.inputs = inputs;
      m.outputs = outputs;
      m.outputsFirst = outputsFirst;
      m.at = vector(inputs * outputs);
      m.forward.resize(static_cast<size_t>(panels(outputs)) * inputs * COLUMNS);
      m.backward.resize(static_cast<size_t>(panels(inputs)) * outputs * COLUMNS);
    };
    matrix(embedding, c.width, c.vocabulary, true);
    for (auto& layer : layers) {
      layer.norm1 = vector(c.width);
      matrix(layer.qkv, c.width, 3 * c.width);
      matrix(layer.out, c.width, c.width);
      layer.norm2 = vector(c.width);
      matrix(layer.gateUp, c.width, 2 * c.inner);
      matrix(layer.down, c.inner, c.width, true);
    }
    finalNorm = vector(c.width);
    if (!c.tied) matrix(ownHead, c.width, c.vocabulary);
    for (Buffer* buffer : {&weights, &first, &second}) buffer->resize(size);
    const int half = c.headSize() / 2;
    for (Buffer* table : {&cosines, &sines}) table->resize(static_cast<size_t>(MAX_CONTEXT) * half);
    for (int position = 0; position < MAX_CONTEXT; position++)
      for (int i = 0; i < half; i++) {
        const double angle = position * std::pow(THETA, -static_cast<double>(i) / half);
        cosines[position * half + i] = static_cast<float>(std::cos(angle));
        sines[position * half + i] = static_cast<float>(std::sin(angle));
      }
  }

  const Matrix& head() const { return config.tied ? embedding : ownHead; }
  const float* weight(size_t at) const { return weights + at; }

  // All matrices that products read; threads share them.
  std::vector<Matrix*> matrices() {
    std::vector<Matrix*> all{config.tied ? &embedding : &ownHead};
    for (auto& layer : layers) all.insert(all.end(), {&layer.qkv, &layer.out, &layer.gateUp, &layer.down});
    return all;
  }
  void packOne(Matrix& m) {
    const int rows = m.outputsFirst ? m.outputs : m.inputs, columns = m.outputsFirst ? m.inputs : m.outputs;
    pack(rows, columns, weights + m.at, columns, m.outputsFirst ? m.backward : m.forward);
    packTransposed(rows, columns, weights + m.at, columns, m.outputsFirst ? m.forward : m.backward);
  }
};

inline float sumOf(__m512 x) { return _mm512_reduce_add_ps(x); }

// y = x / √(mean x² + ε) · w; returns the factor of x.
inline float rmsNorm(int width, const float* x, const float* w, float* y) {
  __m512 squares = _mm512_setzero_ps();
  lanes(width, [&](int i, __mmask16 m) {
    const __m512 v = _mm512_maskz_loadu_ps(m, x + i);
    squares = _mm512_fmadd_ps(v, v, squares);
  });
  const float inverse = 1 / std::sqrt(sumOf(squares) / width + EPSILON);
  lanes(width, [&](int i, __mmask16 m) {
    const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(inverse));
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
  });
  return inverse;
}

// Adds the gradient of x to dx, and that of w to dw; y is the norm's result again.
inline void rmsNormBackward(int width, const float* x, const float* w, float inverse, const float* g, float* dx, float* dw,
                            float* y) {
  __m512 inner = _mm512_setzero_ps();
  lanes(width, [&](int i, __mmask16 m) {
    const __m512 gw = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, g + i), _mm512_maskz_loadu_ps(m, w + i));
    inner = _mm512_fmadd_ps(gw, _mm512_maskz_loadu_ps(m, x + i), inner);
  });
  const __m512 r = _mm512_set1_ps(inverse);
  const __m512 across = _mm512_set1_ps(sumOf(inner) / width * inverse * inverse);
  lanes(width, [&](int i, __mmask16 m) {
    const __m512 gi = _mm512_maskz_loadu_ps(m, g + i), wi = _mm512_maskz_loadu_ps(m, w + i);
    const __m512 xi = _mm512_maskz_loadu_ps(m, x + i), scaled = _mm512_mul_ps(xi, r);
    const __m512 d = _mm512_mul_ps(r, _mm512_fnmadd_ps(across, xi, _mm512_mul_ps(gi, wi)));
    _mm512_mask_storeu_ps(dx + i, m, _mm512_add_ps(_mm512_maskz_loadu_ps(m, dx + i), d));
    _mm512_mask_storeu_ps(dw + i, m, _mm512_fmadd_ps(gi, scaled, _mm512_maskz_loadu_ps(m, dw + i)));
    _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(scaled, wi));
  });
}

// Rotates `count` heads by a position; backwards with sign −1.
inline void rotate(const Model& model, int position, int count, float* x, float sign) {
  const int size = model.config.headSize(), half = size / 2;
  const float *cosines = model.cosines + position * half, *sines = model.sines + position * half;
  const __m512 direction = _mm512_set1_ps(sign);
  for (int head = 0; head < count; head++, x += size)
    lanes(half, [&](int i, __mmask16 m) {
      const __m512 a = _mm512_maskz_loadu_ps(m, x + i), b = _mm512_maskz_loadu_ps(m, x + half + i);
      const __m512 c = _mm512_maskz_loadu_ps(m, cosines + i);
      const __m512 s = _mm512_mul_ps(direction, _mm512_maskz_loadu_ps(m, sines + i));
      _mm512_mask_storeu_ps(x + i, m, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
      _mm512_mask_storeu_ps(x + half + i, m, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    });
}

inline __m512 sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1);
  return _mm512_div_ps(one, _mm512_add_ps(one, exponential(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

// h = silu(gate) · up.
inline void swiglu(int inner, const float* gate, const float* up, float* h) {
  lanes(inner, [&](int i, __mmask16 m) {
    const __m512 g = _mm512_maskz_loadu_ps(m, gate + i);
    const __m512 silu = _mm512_mul_ps(g, sigmoid(g));
    _mm512_mask_storeu_ps(h + i, m, _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(m, up + i)));
  });
}

// The gradients of gate and up take their places, and h takes that of its gradient.
inline void swigluBackward(int inner, float* gate, float* up, float* h) {
  const __m512 one = _mm512_set1_ps(1);
  lanes(inner, [&](int i, __mmask16 m) {
    const __m512 g = _mm512_maskz_loadu_ps(m, gate + i), u = _mm512_maskz_loadu_ps(m, up + i);
    const __m512 dh = _mm512_maskz_loadu_ps(m, h + i), s = sigmoid(g), silu = _mm512_mul_ps(g, s);
    const __m512 slope = _mm512_fmadd_ps(silu, _mm512_sub_ps(one, s), s);
    _mm512_mask_storeu_ps(h + i, m, _mm512_mul_ps(silu, u));
    _mm512_mask_storeu_ps(up + i, m, _mm512_mul_ps(dh, silu));
    _mm512_mask_storeu_ps(gate + i, m, _mm512_mul_ps(_mm512_mul_ps(dh, u), slope));
  });
}

// Replaces x by its exponentials below the largest number, and returns log Σ exp; those from `count` to `end` become 0.
inline float softmax(int count, int end, float* x, bool normalised = true) {
  __m512 most = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
  lanes(count, [&](int i, __mmask16 m) { most = _mm512_mask_max_ps(most, m, most, _mm512_maskz_loadu_ps(m, x + i)); });
  const float largest = _mm512_reduce_max_ps(most);
  const __m512 shift = _mm512_set1_ps(largest);
  lanes(count, [&](int i, __mmask16 m) {
    const __m512 e = _mm512_maskz_mov_ps(m, exponential(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), shift)));
    sum = _mm512_add_ps(sum, e);
    _mm512_mask_storeu_ps(x + i, laneMask(end - i), e);
  });
  for (int i = (count + LANES - 1) / LANES * LANES; i < end; i++) x[i] = 0;
  const float total = sumOf(sum);
  if (normalised) {
    const __m512 share = _mm512_set1_ps(1 / total);
    lanes(count, [&](int i, __mmask16 m) {
      _mm512_mask_storeu_ps(x + i, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), share));
    });
  }
  return largest + std::log(total);
}
