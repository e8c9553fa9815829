// Sampling: prefill, continued prompts and decode steps are one pass over the new tokens of some rows, each with a cache
// of keys and values. Rows of a group share the cache of their prompt.
#pragma once
#include <cstdint>

#include "model.h"

// Keys [layer][head][places / 32][size][32] and values [layer][head][size / 32][places][32] of one row.
struct Cache {
  int length = 0, capacity = 0;
  Buffer keys, values;

  void reserve(const Config& c, int places) {
    capacity = panels(places) * COLUMNS;
    keys.resize(static_cast<size_t>(c.layers) * c.heads * capacity * c.headSize());
    values.resize(static_cast<size_t>(c.layers) * c.heads * capacity * panels(c.headSize()) * COLUMNS);
  }
  float* keysOf(const Config& c, int layer, int head) const {
    return keys + static_cast<long>(layer * c.heads + head) * capacity * c.headSize();
  }
  float* valuesOf(const Config& c, int layer, int head) const {
    return values + static_cast<long>(layer * c.heads + head) * capacity * panels(c.headSize()) * COLUMNS;
  }
  void put(const Config& c, int layer, int place, const float* k, const float* v) {
    const int size = c.headSize();
    for (int head = 0; head < c.heads; head++, k += size, v += size) {
      float* to = keysOf(c, layer, head) + static_cast<long>(place / COLUMNS) * size * COLUMNS + place % COLUMNS;
      for (int i = 0; i < size; i++) to[i * COLUMNS] = k[i];
      float* into = valuesOf(c, layer, head) + static_cast<long>(place) * COLUMNS;
      for (int p = 0; p < panels(size); p++)
        memcpy(into + static_cast<long>(p) * capacity * COLUMNS, v + p * COLUMNS,
               std::min(COLUMNS, size - p * COLUMNS) * sizeof(float));
    }
  }
};

// New tokens of a row; `shared` is the cache of what comes before its own, if others have it too.
struct Piece {
  Cache* own;
  const Cache* shared;
  const int* ids;
  int count;
};

struct Random {
  uint64_t state;
  double next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

class Sampler {
 public:
  explicit Sampler(const Model& model) : model(model), c(model.config) {
    wide = padded(c.width), wideQkv = padded(3 * c.width), wideGate = padded(2 * c.inner), wideInner = padded(c.inner);
    wideLogits = padded(c.vocabulary);
  }

  // Reads the pieces; rows of `logits` are those of their last tokens.
  void read(const Piece* pieces, int count) {
    places.clear();
    ends.clear();
    for (int i = 0; i < count; i++) {
      const int before = pieces[i].own->length + (pieces[i].shared ? pieces[i].shared->length : 0);
      for (int t = 0; t < pieces[i].count; t++)
        places.push_back({i, pieces[i].ids[t], before + t, pieces[i].own->length + t});
      ends.push_back(static_cast<int>(places.size()) - 1);
    }
    const int n = static_cast<int>(places.size());
    for (Buffer* b : {&x, &normed, &out}) b->resize(n * wide);
    qkv.resize(n * wideQkv);
    gate.resize(n * wideGate);
    inner.resize(n * wideInner);
    logits.resize(count * wideLogits);
    for (int t = 0; t < n; t++)
      memcpy(x + t * wide, model.weight(model.embedding.at) + static_cast<long>(places[t].id) * c.width,
             c.width * sizeof(float));
    for (int l = 0; l < c.layers; l++) layer(l, pieces, count);
    for (int i = 0; i < count; i++) pieces[i].own->length += pieces[i].count;
    for (int t = 0; t < count; t++) rmsNorm(c.width, x + t * wide, model.weight(model.finalNorm), normed + t * wide);
    multiply(count, c.vocabulary, c.width, normed, wide, model.head().forward, logits, wideLogits);
  }

  // A token of a row's distribution, and its log-probability.
  std::pair<int, float> draw(int row, Random& random) {
    float* p = logits + row * wideLogits;
    softmax(c.vocabulary, c.vocabulary, p);
    float left = static_cast<float>(random.next());
    int block = 0;
    for (; block + LANES < c.vocabulary; block += LANES) {
      const float share = sumOf(_mm512_loadu_ps(p + block));
      if (left < share) break;
      left -= share;
    }
    int token = block;
    while (token + 1 < std::min(block + LANES, c.vocabulary) && (left -= p[token]) >= 0) token++;
    return {token, std::log(p[token])};
  }

  std::vector<float> copyRow(int row) const {
    return {logits + row * wideLogits, logits + row * wideLogits + c.vocabulary};
  }
  void putRow(int row, const std::vector<float>& numbers) {
    std::copy(numbers.begin(), numbers.end(), logits + row * wideLogits);
  }

 private:
  struct Place {
    int piece, id, position, own;
  };
  const Model& model;
  const Config& c;
  long wide, wideQkv, wideGate, wideInner, wideLogits;
  Buffer x, normed, out, qkv, gate, inner, logits, scores;
  std::vector<Place> places;
  std::vector<int> ends;

  // After the last layer only the last tokens of the pieces are left.
  void layer(int l, const Piece* pieces, int count) {
    const Layer& w = model.layers[l];
    const int n = static_cast<int>(places.size());
    for (int t = 0; t < n; t++) rmsNorm(c.width, x + t * wide, model.weight(w.norm1), normed + t * wide);
    const bool onlyEnds = l + 1 == c.layers && n > count && c.width % COLUMNS == 0;
    const int from = onlyEnds ? c.width : 0;
    multiply(n, 3 * c.width - from, c.width, normed, wide, w.qkv.forward + static_cast<long>(from) * c.width,
             qkv + from, wideQkv);
    if (onlyEnds) multiplyEnds(w);
    for (int t = 0; t < n; t++) {
      float* row = qkv + t * wideQkv;
      rotate(model, places[t].position, onlyEnds ? c.heads : 2 * c.heads, row + from, 1);
      pieces[places[t].piece].own->put(c, l, places[t].own, row + c.width, row + 2 * c.width);
    }
    if (onlyEnds)
      for (int i = 0; i < count; i++) rotate(model, places[ends[i]].position, c.heads, qkv + ends[i] * wideQkv, 1);
    for (int i = 0; i < count;) {
      int group = 1;
      while (pieces[i].shared && pieces[i].count == 1 && group < ROWS && i + group < count &&
             pieces[i + group].shared == pieces[i].shared)
        group++;
      const int first = ends[i] - pieces[i].count + 1;
      if (group > 1 || pieces[i].count == 1) attendSteps(l, pieces + i, group, first);
      else attendPiece(l, pieces[i], onlyEnds ? ends[i] : first, ends[i]);
      i += group;
    }
    const int rows = onlyEnds ? count : n;
    if (onlyEnds)
      for (int i = 0; i < count; i++) {
        memmove(out + i * wide, out + ends[i] * wide, c.width * sizeof(float));
        memmove(x + i * wide, x + ends[i] * wide, c.width * sizeof(float));
      }
    multiply(rows, c.width, c.width, out, wide, w.out.forward, x, wide, x, wide);
    // Few rows at a time, so that what lies between the products stays in cache.
    const int tile = std::max(1, (1 << 17) / (2 * c.inner) / ROWS) * ROWS;
    for (int at = 0; at < rows; at += tile) {
      const int some = std::min(tile, rows - at);
      for (int t = 0; t < some; t++) rmsNorm(c.width, x + (at + t) * wide, model.weight(w.norm2), normed + t * wide);
      multiply(some, 2 * c.inner, c.width, normed, wide, w.gateUp.forward, gate, wideGate);
      for (int t = 0; t < some; t++) swiglu(c.inner, gate + t * wideGate, gate + t * wideGate + c.inner, inner + t * wideInner);
      multiply(some, c.width, c.inner, inner, wideInner, w.down.forward, x + at * wide, wide, x + at * wide, wide);
    }
  }

  // Queries of the pieces' last tokens.
  void multiplyEnds(const Layer& w) {
    const int count = static_cast<int>(ends.size());
    for (int i = 0; i < count; i++) memcpy(out + i * wide, normed + ends[i] * wide, c.width * sizeof(float));
    multiply(count, c.width, c.width, out, wide, w.qkv.forward, inner, wide);
    for (int i = 0; i < count; i++) memcpy(qkv + ends[i] * wideQkv, inner + i * wide, c.width * sizeof(float));
  }

  // Several new tokens of one row, `first` to `last`, none of whose prompt is shared.
  void attendPiece(int l, const Piece& piece, int first, int last) {
    const int size = c.headSize(), ld = padded(piece.own->capacity);
    const float scale = 1 / std::sqrt(static_cast<float>(size));
    scores.resize(static_cast<size_t>(ROWS) * ld);
    const Blocks blocks(last + 1 - first);
    for (int head = 0; head < c.heads; head++)
      for (int b = 0; b < blocks.count; b++) {
        const int from = first + blocks.begin(b), rows = blocks.begin(b + 1) - blocks.begin(b);
        const int end = places[from + rows - 1].own + 1;
        for (int p = 0; p < panels(end); p++)
          block<false>(rows, COLUMNS, size, qkv + from * wideQkv + head * size, wideQkv,
                       piece.own->keysOf(c, l, head) + static_cast<long>(p) * size * COLUMNS, COLUMNS,
                       scores + p * COLUMNS, ld, scale);
        for (int r = 0; r < rows; r++) softmax(places[from + r].own + 1, end, scores + static_cast<long>(r) * ld);
        for (int p = 0; p < panels(size); p++)
          block<false>(rows, size - p * COLUMNS, end, scores, ld,
                       piece.own->valuesOf(c, l, head) + static_cast<long>(p) * piece.own->capacity * COLUMNS, COLUMNS,
                       out + from * wide + head * size + p * COLUMNS, wide);
      }
  }

  // One new token of each of some rows, which may share the cache of their prompt.
  void attendSteps(int l, const Piece* pieces, int rows, int first) {
    const int size = c.headSize();
    const Cache* shared = pieces[0].shared;
    const int before = shared ? panels(shared->length) * COLUMNS : 0;
    const float scale = 1 / std::sqrt(static_cast<float>(size));
    int most = 0;
    for (int r = 0; r < rows; r++) most = std::max(most, pieces[r].own->capacity);
    const int ld = padded(before + most);
    scores.resize(static_cast<size_t>(ROWS) * ld);
    for (int head = 0; head < c.heads; head++) {
      const float* q = qkv + first * wideQkv + head * size;
      float* to = out + first * wide + head * size;
      for (int at = 0; at < before; at += COLUMNS)
        block<false>(rows, COLUMNS, size, q, wideQkv, shared->keysOf(c, l, head) + static_cast<long>(at) * size, COLUMNS,
                     scores + at, ld, scale);
      for (int r = 0; r < rows; r++) {
        const int end = pieces[r].own->length + 1;
        float* row = scores + static_cast<long>(r) * ld;
        for (int at = shared ? shared->length : 0; at < before; at++) row[at] = -1e30f;
        for (int at = 0; at < end; at += COLUMNS)
          block<false>(1, COLUMNS, size, q + r * wideQkv, wideQkv,
                       pieces[r].own->keysOf(c, l, head) + static_cast<long>(at) * size, COLUMNS, row + before + at, ld,
                      scale);
        softmax(before + end, before + end, row);
      }
      for (int p = 0; p < panels(size); p++) {
        const int columns = size - p * COLUMNS;
        if (shared)
          block<false>(rows, columns, shared->length, scores, ld,
                       shared->valuesOf(c, l, head) + static_cast<long>(p) * shared->capacity * COLUMNS, COLUMNS,
                       to + p * COLUMNS, wide);
        for (int r = 0; r < rows; r++) {
          float* into = to + r * wide + p * COLUMNS;
          block<false>(1, columns, pieces[r].own->length + 1, scores + static_cast<long>(r) * ld + before, ld,
                       pieces[r].own->valuesOf(c, l, head) + static_cast<long>(p) * pieces[r].own->capacity * COLUMNS, COLUMNS,
                       into, wide, 1, shared ? into : nullptr, wide);
        }
      }
    }
  }
};
