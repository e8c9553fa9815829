// Matrix products in 32 bits with AVX-512, for one thread.
//
// A kernel keeps 14 rows and 32 columns of a product in registers. For x w, x is read where it lies and w is packed
// into panels of 32 columns, [columns / 32][depth][32]. For xᵀ y, a sum over tokens ("tall"), y is read where it lies and
// x, which is narrower, is packed. A product in 16 bits would replace `multiply`, `multiplyTall` and the packing.
#pragma once
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

constexpr int ROWS = 14, COLUMNS = 32, LANES = 16;

inline __mmask16 laneMask(int count) { return count >= LANES ? 0xffff : count <= 0 ? 0 : (1u << count) - 1; }

// Calls f(place, mask) for each vector of a row.
template <class F>
inline void lanes(int width, F f) {
  for (int i = 0; i < width; i += LANES) f(i, laneMask(width - i));
}

inline int panels(int columns) { return (columns + COLUMNS - 1) / COLUMNS; }

// Distance of rows in memory: not a power of two, so that rows do not share cache sets.
inline int padded(int width) { return (width + LANES - 1) / LANES * LANES + LANES; }

// Zeroed, aligned memory.
struct Buffer {
  float* data = nullptr;
  size_t size = 0;
  Buffer() = default;
  explicit Buffer(size_t n) { resize(n); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data, other.data);
    std::swap(size, other.size);
    return *this;
  }
  ~Buffer() { free(data); }
  void resize(size_t n) {
    if (n <= size) return;
    free(data);
    // A panel may be read a little beyond what it holds.
    const size_t unit = n < 1 << 19 ? 64 : 1 << 19;
    size = (n + 64 + unit - 1) / unit * unit;
    data = static_cast<float*>(aligned_alloc(unit * sizeof(float), size * sizeof(float)));
    if (data == nullptr) throw std::bad_alloc();
    if (unit > 64) madvise(data, size * sizeof(float), MADV_HUGEPAGE);
    memset(data, 0, size * sizeof(float));
  }
  operator float*() const { return data; }
};

// What will be needed next, fetched meanwhile: two cache lines for every four steps of a kernel.
struct Ahead {
  const float* at;
  long step;
};

// R rows of one panel: c = scale · a b (+ add). `step` is the distance of a's rows, or of its columns if tall, and then
// `ldb` that of b's rows.
template <int R, int V, bool Tall>
void kernel(int depth, const float* a, long step, const float* b, long ldb, float* c, long ldc, float scale, const float* add,
            long lda, __mmask16 last, Ahead ahead) {
  __m512 sum[R][V];
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < V; v++) sum[r][v] = _mm512_setzero_ps();
    if (add != nullptr)
      for (int v = 0; v < V; v++) _mm_prefetch(reinterpret_cast<const char*>(add + r * lda + v * LANES), _MM_HINT_T0);
  }
  const float* rows[(R + 2) / 3];
  for (int i = 0; i < (R + 2) / 3; i++) rows[i] = a + (Tall ? 0 : 3 * i * step);
  auto one = [&](int k) __attribute__((always_inline)) {
    __m512 right[V];
    for (int v = 0; v < V; v++) right[v] = _mm512_loadu_ps(b + (Tall ? 0 : k * COLUMNS) + v * LANES);
#pragma GCC unroll 14
    for (int r = 0; r < R; r++) {
      const __m512 left = _mm512_set1_ps(Tall ? a[r] : rows[r / 3][(r % 3) * step + k]);
#pragma GCC unroll 2
      for (int v = 0; v < V; v++) sum[r][v] = _mm512_fmadd_ps(left, right[v], sum[r][v]);
    }
    if (Tall) {
      a += step;
      b += ldb;
      // Otherwise the compiler keeps an address for each row of each step, more than there are registers.
      asm("" : "+r"(a), "+r"(b));
    }
  };
  int k = 0;
  for (; k + 4 <= depth; k += 4) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead.at), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(ahead.at + LANES), _MM_HINT_T1);
    ahead.at += ahead.step;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) one(i);
    b += Tall ? 0 : 4 * COLUMNS;
    for (auto& row : rows) row += 4;
  }
  for (; k < depth; k++) {
    one(0);
    b += Tall ? 0 : COLUMNS;
    for (auto& row : rows) row += 1;
  }
  const __m512 factor = _mm512_set1_ps(scale);
#pragma GCC unroll 14
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int v = 0; v < V; v++) {
      const __mmask16 mask = v == V - 1 ? last : 0xffff;
      __m512 value = _mm512_mul_ps(sum[r][v], factor);
      if (add != nullptr) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, add + r * lda + v * LANES));
      _mm512_mask_storeu_ps(c + r * ldc + v * LANES, mask, value);
    }
}

using Kernel = void (*)(int, const float*, long, const float*, long, float*, long, float, const float*, long, __mmask16, Ahead);

template <bool Tall, int V, int... R>
constexpr std::array<Kernel, ROWS> kernelsOf(std::integer_sequence<int, R...>) {
  return {kernel<R + 1, V, Tall>...};
}
template <bool Tall>
inline Kernel kernelFor(int rows, int vectors) {
  static constexpr auto one = kernelsOf<Tall, 1>(std::make_integer_sequence<int, ROWS>());
  static constexpr auto two = kernelsOf<Tall, 2>(std::make_integer_sequence<int, ROWS>());
  return (vectors == 1 ? one : two)[rows - 1];
}

// Blocks of rows of nearly equal size.
struct Blocks {
  int rows, count;
  explicit Blocks(int n) : rows(n), count((n + ROWS - 1) / ROWS) {}
  int begin(int i) const { return static_cast<int>(static_cast<long>(rows) * i / count); }
};

// A block of rows times one panel, of which `columns` are wanted; of b's panel or, if tall, of b as it lies.
template <bool Tall>
inline void block(int rows, int columns, int depth, const float* a, long step, const float* b, long ldb, float* c, long ldc,
                  float scale = 1, const float* add = nullptr, long lda = 0, const Ahead* ahead = nullptr) {
  columns = std::min(columns, COLUMNS);
  const int vectors = columns > LANES ? 2 : 1;
  kernelFor<Tall>(rows, vectors)(depth, a, step, b, ldb, c, ldc, scale, add, lda, laneMask(columns - LANES * (vectors - 1)),
                                 ahead == nullptr ? Ahead{b, 0} : *ahead);
}

// c [m, n] = a [m, k] b (+ add), with b in panels.
inline void multiply(int m, int n, int k, const float* a, long lda, const float* b, float* c, long ldc,
                     const float* add = nullptr, long ldAdd = 0) {
  const Blocks blocks(m);
  const long size = static_cast<long>(k) * COLUMNS;
  for (int first = 0; first < blocks.count; first += 8)
    for (int p = 0; p < panels(n); p++)
      for (int i = first; i < std::min(blocks.count, first + 8); i++) {
        const int from = blocks.begin(i), to = blocks.begin(i + 1), at = p * COLUMNS;
        const float* panel = b + p * size;
        // The first four blocks fetch the next panel.
        const Ahead next{i - first < 4 ? panel + size + (i - first) * size / 4 : panel, COLUMNS};
        block<false>(to - from, n - at, k, a + from * lda, lda, panel, COLUMNS, c + from * ldc + at, ldc, 1,
                     add == nullptr ? nullptr : add + from * ldAdd + at, ldAdd, &next);
      }
}

// Panels of x [rows, columns] as it lies: [columns / 32][rows][32], zeros behind the last column.
inline void pack(int rows, int columns, const float* x, long ldx, float* out, long depth = 0) {
  if (depth == 0) depth = rows;
  for (int p = 0; p < panels(columns); p++) {
    const int at = p * COLUMNS;
    const __mmask16 low = laneMask(columns - at), high = laneMask(columns - at - LANES);
    float* to = out + p * depth * COLUMNS;
    for (int r = 0; r < rows; r++) {
      _mm512_store_ps(to + r * COLUMNS, _mm512_maskz_loadu_ps(low, x + r * ldx + at));
      _mm512_store_ps(to + r * COLUMNS + LANES, _mm512_maskz_loadu_ps(high, x + r * ldx + at + LANES));
    }
  }
}

// 16 rows, of which `rows` exist, become columns: out[c · 32 + r] = x[r · ldx + c].
inline void transpose16(const float* x, long ldx, int rows, int columns, float* out) {
  __m512 a[16], b[16];
  const __mmask16 mask = laneMask(columns);
  for (int r = 0; r < 16; r++) a[r] = r < rows ? _mm512_maskz_loadu_ps(mask, x + r * ldx) : _mm512_setzero_ps();
  for (int i = 0; i < 8; i++) {
    b[2 * i] = _mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]);
  }
  auto pd = [](__m512 v) { return _mm512_castps_pd(v); };
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++) {
      a[4 * i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(pd(b[4 * i + j]), pd(b[4 * i + 2 + j])));
      a[4 * i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(pd(b[4 * i + j]), pd(b[4 * i + 2 + j])));
    }
  for (int i = 0; i < 4; i++) {
    b[i] = _mm512_shuffle_f32x4(a[i], a[4 + i], 0x88);
    b[4 + i] = _mm512_shuffle_f32x4(a[i], a[4 + i], 0xdd);
    b[8 + i] = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0x88);
    b[12 + i] = _mm512_shuffle_f32x4(a[8 + i], a[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; i++) {
    a[i] = _mm512_shuffle_f32x4(b[i], b[8 + i], 0x88);
    a[8 + i] = _mm512_shuffle_f32x4(b[i], b[8 + i], 0xdd);
    a[4 + i] = _mm512_shuffle_f32x4(b[4 + i], b[12 + i], 0x88);
    a[12 + i] = _mm512_shuffle_f32x4(b[4 + i], b[12 + i], 0xdd);
  }
  for (int c = 0; c < std::min(16, columns); c++) _mm512_storeu_ps(out + c * COLUMNS, a[c]);
}

// Panels of the transpose of x [rows, columns]: [rows / 32][columns][32], zeros behind the last row.
inline void packTransposed(int rows, int columns, const float* x, long ldx, float* out) {
  for (int r = 0; r < panels(rows) * COLUMNS; r += LANES)
    for (int c = 0; c < columns; c += LANES)
      transpose16(x + r * ldx + c, ldx, rows - r, columns - c,
                  out + (static_cast<long>(r / COLUMNS) * columns + c) * COLUMNS + r % COLUMNS);
}

// c [m, n] += aᵀ b for a [k, m] and b [k, n]: sums over k tokens. b is better the wider of both.
inline void multiplyTall(int m, int n, int k, const float* a, long lda, const float* b, long ldb, float* c, long ldc,
                         Buffer& scratch) {
  const Blocks blocks(m);
  const long size = static_cast<long>(k) * LANES;
  scratch.resize(blocks.count * size);
  for (int i = 0; i < blocks.count; i++) {
    const int from = blocks.begin(i);
    const __mmask16 mask = laneMask(blocks.begin(i + 1) - from);
    for (int row = 0; row < k; row++)
      _mm512_store_ps(scratch + i * size + row * LANES, _mm512_maskz_loadu_ps(mask, a + row * lda + from));
  }
  for (int at = 0; at < n; at += COLUMNS)
    for (int i = 0; i < blocks.count; i++) {
      const int from = blocks.begin(i);
      float* into = c + from * ldc + at;
      // The first four blocks fetch the next columns.
      const Ahead next{b + at + (i < 4 ? COLUMNS + i * (k / 4) * ldb : 0), i < 4 ? ldb : 0};
      block<true>(blocks.begin(i + 1) - from, n - at, k, scratch + i * size, LANES, b + at, ldb, into, ldc, 1, into, ldc,
                  &next);
    }
}
