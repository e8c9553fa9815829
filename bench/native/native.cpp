// A transformer that trains and samples on a CPU, without a framework: the prototype that ../native.ts measures.
//
// Reads one JSON command per line from standard input and answers with one JSON line each, as ../peer/peer.py does.
// Threads share no product: each has sequences, or rows, of its own.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "sample.h"
#include "train.h"

namespace {

constexpr int MICRO_BATCH = 512, PROMPT_TOKENS = 128;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Threads that spin shortly for their next work, then sleep.
class Pool {
 public:
  const int size;
  explicit Pool(int n) : size(n) {
    for (int i = 1; i < n; i++) threads.emplace_back([this, i] { work(i); });
  }
  ~Pool() {
    run([](int) {}, true);
    for (auto& thread : threads) thread.join();
  }
  void run(const std::function<void(int)>& f, bool last = false) {
    job = &f;
    ended = last;
    left = size - 1;
    {
      std::lock_guard<std::mutex> lock(mutex);
      epoch++;
    }
    wake.notify_all();
    f(0);
    while (left > 0) _mm_pause();
  }

 private:
  std::vector<std::thread> threads;
  const std::function<void(int)>* job = nullptr;
  bool ended = false;
  std::atomic<int> epoch{0}, left{0};
  std::mutex mutex;
  std::condition_variable wake;

  void work(int index) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _mm_setcsr(_mm_getcsr() | 0x40);
    for (int seen = 0;; seen++) {
      for (int i = 0; i < 2000 && epoch == seen; i++) _mm_pause();
      if (epoch == seen) {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return epoch != seen; });
      }
      const bool stop = ended;
      (*job)(index);
      left--;
      if (stop) return;
    }
  }
};

struct Command {
  std::string line;
  const char* find(const char* name) const {
    const size_t at = line.find("\"" + std::string(name) + "\":");
    return at == std::string::npos ? nullptr : line.c_str() + at + strlen(name) + 3;
  }
  int number(const char* name, int usual = 0) const {
    const char* at = find(name);
    return at == nullptr ? usual : strncmp(at, "true", 4) == 0 ? 1 : atoi(at);
  }
  std::string text(const char* name) const {
    const char* at = find(name);
    return at == nullptr ? "" : std::string(at + 1, strchr(at + 1, '"'));
  }
  std::vector<int> list(const char* name) const {
    std::vector<int> numbers;
    const char* at = find(name);
    if (at == nullptr) throw std::runtime_error(std::string("expected ") + name);
    for (char* end; *at != ']'; at = end) numbers.push_back(static_cast<int>(strtol(at + 1, &end, 10)));
    return numbers;
  }
};

class Session {
 public:
  explicit Session(int threads) : pool(threads) {}

  std::string handle(const Command& command) {
    const std::string what = command.text("do");
    if (what == "hello") return "\"threads\":" + std::to_string(pool.size);
    if (what == "product") return product(command);
    if (what == "model") return open(command);
    if (model == nullptr) throw std::runtime_error("expected a model first");
    if (what == "load") return load(command.text("file"));
    if (what == "gradients") return writeGradients(command);
    if (what == "train") return train(command);
    if (what == "sample") return sample(command);
    if (what == "rollout") return rollout(command);
    throw std::runtime_error("unknown command " + what);
  }

 private:
  Pool pool;
  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::unique_ptr<Sampler>> samplers;
  Random random{88172645463325252ull};

  std::vector<int> randomIds(int count) {
    std::vector<int> ids(count);
    for (int& id : ids) id = static_cast<int>(random.next() * model->config.vocabulary);
    return ids;
  }

  static std::string seconds(double spent) { return "\"seconds\":" + std::to_string(spent); }

  std::string open(const Command& k) {
    trainers.clear();
    samplers.clear();
    model = std::make_unique<Model>(Config{k.number("dim"), k.number("layers"), k.number("heads"), k.number("inner"),
                                           k.number("vocab"), k.number("tied") != 0});
    for (size_t i = 0; i < model->size; i++)
      model->weights[i] = static_cast<float>(0.02 * (random.next() + random.next() + random.next() - 1.5) * 2);
    for (const Layer& layer : model->layers)
      for (size_t at : {layer.norm1, layer.norm2})
        std::fill_n(model->weights + at, model->config.width, 1.f);
    std::fill_n(model->weights + model->finalNorm, model->config.width, 1.f);
    for (int i = 0; i < pool.size; i++) samplers.push_back(std::make_unique<Sampler>(*model));
    packWeights();
    return "\"parameters\":" + std::to_string(model->size);
  }

  std::string load(const std::string& file) {
    std::unique_ptr<FILE, int (*)(FILE*)> in(fopen(file.c_str(), "rb"), fclose);
    if (!in || fread(model->weights, sizeof(float), model->size, in.get()) != model->size)
      throw std::runtime_error("expected " + std::to_string(model->size) + " numbers in " + file);
    packWeights();
    return "\"parameters\":" + std::to_string(model->size);
  }

  void packWeights() {
    const auto matrices = model->matrices();
    pool.run([&](int thread) {
      for (size_t i = thread; i < matrices.size(); i += pool.size) model->packOne(*matrices[i]);
    });
  }

  // Deals sequences out to threads, longest first, and adds up their gradients.
  void backward(std::vector<Sequence>& sequences) {
    std::vector<Sequence*> order;
    for (auto& sequence : sequences) order.push_back(&sequence);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->ids.size() > b->ids.size(); });
    std::vector<std::vector<Sequence*>> shares(pool.size);
    std::vector<size_t> tokens(pool.size);
    for (Sequence* sequence : order) {
      const size_t least = std::min_element(tokens.begin(), tokens.end()) - tokens.begin();
      shares[least].push_back(sequence);
      tokens[least] += sequence->ids.size();
    }
    for (int i = static_cast<int>(trainers.size()); i < pool.size; i++)
      trainers.push_back(std::make_unique<Trainer>(*model, std::max<int>(MICRO_BATCH, order[0]->ids.size())));
    pool.run([&](int thread) {
      const auto& share = shares[thread];
      const size_t batches = std::max<size_t>(1, (tokens[thread] + MICRO_BATCH - 1) / MICRO_BATCH);
      const size_t most = std::min<size_t>(MICRO_BATCH, (tokens[thread] + batches - 1) / batches + 16);
      for (size_t from = 0; from < share.size();) {
        size_t to = from, size = 0;
        while (to < share.size() && (to == from || size + share[to]->ids.size() <= most)) size += share[to++]->ids.size();
        trainers[thread]->learn(&share[from], static_cast<int>(to - from));
        from = to;
      }
      trainers[thread]->join();
    });
  }

  void step() {
    model->steps++;
    std::vector<float*> gradients;
    for (auto& trainer : trainers) gradients.push_back(trainer->gradients);
    const size_t part = (model->size / pool.size + 63) / 64 * 64;
    pool.run([&](int thread) {
      adamW(*model, gradients, thread * part, thread + 1 == pool.size ? model->size : (thread + 1) * part, {});
    });
    packWeights();
  }

  Sequence sequenceOf(const std::vector<int>& ids, float factor) {
    const size_t n = ids.size() - 1;
    return {{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}, std::vector<float>(n, factor), std::vector<float>(n)};
  }

  // Steps on sequences of the given numbers of targets, `each` at a time.
  std::string train(const Command& k) {
    const std::vector<int> lengths = k.find("lengths") ? k.list("lengths") : std::vector<int>(k.number("batch"), k.number("length"));
    const size_t each = k.number("each", static_cast<int>(lengths.size()));
    std::vector<std::vector<Sequence>> batches;
    size_t tokens = 0;
    for (size_t i = 0; i < lengths.size(); tokens += lengths[i], i++) {
      if (i % each == 0) batches.emplace_back();
      batches.back().push_back(sequenceOf(randomIds(lengths[i] + 1), 1.f / 4096));
    }
    const double begin = now();
    for (auto& batch : batches) {
      backward(batch);
      step();
    }
    const double spent = now() - begin;
    return seconds(spent) + ",\"tokens_per_s\":" + std::to_string(tokens / spent);
  }

  // Writes log-probabilities and gradients for sequences, whose ids follow one another in `ids`.
  std::string writeGradients(const Command& k) {
    const std::vector<int> ids = k.list("ids"), lengths = k.list("lengths");
    std::vector<Sequence> sequences;
    int at = 0, place = 0;
    for (int length : lengths) {
      sequences.push_back(sequenceOf({ids.begin() + at, ids.begin() + at + length}, 0));
      for (float& factor : sequences.back().factors) factor = static_cast<float>(++place % 7 - 2) / 64;
      at += length;
    }
    backward(sequences);
    std::unique_ptr<FILE, int (*)(FILE*)> out(fopen(k.text("file").c_str(), "wb"), fclose);
    if (!out) throw std::runtime_error("cannot write " + k.text("file"));
    for (auto& sequence : sequences) fwrite(sequence.logprobs.data(), sizeof(float), sequence.logprobs.size(), out.get());
    for (size_t i = 0; i < model->size; i++) {
      float sum = 0;
      for (auto& trainer : trainers) sum += std::exchange(trainer->gradients[i], 0.f);
      fwrite(&sum, sizeof(float), 1, out.get());
    }
    return "\"parameters\":" + std::to_string(model->size);
  }

  struct Row {
    Cache cache;
    const Cache* shared = nullptr;
    std::vector<int> unread, all;
    std::vector<float> logprobs;
  };

  // Reads what rows have not read, so many tokens at a time, then draws `count` tokens of each.
  void draw(Sampler& sampler, Row* rows, int n, int count, Random& chance) {
    std::vector<Piece> pieces;
    auto take = [&](int from) {
      for (size_t i = 0; i < pieces.size(); i++) {
        Row& row = rows[from + i];
        const auto [token, logprob] = sampler.draw(static_cast<int>(i), chance);
        row.unread = {token};
        row.all.push_back(token);
        row.logprobs.push_back(logprob);
      }
      pieces.clear();
    };
    auto pieceOf = [](Row& row) { return Piece{&row.cache, row.shared, row.unread.data(), static_cast<int>(row.unread.size())}; };
    for (int drawn = 0; drawn < count; drawn++)
      for (int from = 0, to = 0; from < n; from = to) {
        size_t tokens = 0;
        while (to < n && (to == from || tokens + rows[to].unread.size() <= PROMPT_TOKENS)) tokens += rows[to++].unread.size();
        for (int i = from; i < to; i++) pieces.push_back(pieceOf(rows[i]));
        sampler.read(pieces.data(), to - from);
        take(from);
      }
  }

  // `count` samples of `new` tokens after each of some prompts.
  std::string sample(const Command& k) {
    const int prompts = k.number("prompts"), count = k.number("count"), length = k.number("prompt"), fresh = k.number("new");
    std::vector<std::vector<int>> texts;
    for (int i = 0; i < prompts; i++) texts.push_back(randomIds(length));
    std::vector<Row> rows(prompts * count);
    std::vector<Cache> shared(count > 1 ? prompts : 0);
    const double begin = now();
    pool.run([&](int thread) {
      const int from = prompts * thread / pool.size, to = prompts * (thread + 1) / pool.size;
      Random chance{random.state + 7919 * (thread + 1)};
      Sampler& sampler = *samplers[thread];
      for (int i = from; i < to; i++) {
        Row* own = &rows[i * count];
        for (int j = 0; j < count; j++) {
          own[j].all = texts[i];
          own[j].cache.reserve(model->config, count > 1 ? fresh : length + fresh);
        }
        own->unread = texts[i];
        if (count == 1) continue;
        // The prompt is read once, and the samples' first tokens are drawn from one distribution.
        shared[i].reserve(model->config, length);
        const Piece prompt{&shared[i], nullptr, texts[i].data(), length};
        sampler.read(&prompt, 1);
        const std::vector<float> kept = sampler.copyRow(0);
        for (int j = 0; j < count; j++) {
          sampler.putRow(0, kept);
          const auto [token, logprob] = sampler.draw(0, chance);
          own[j].shared = &shared[i];
          own[j].unread = {token};
          own[j].all.push_back(token);
          own[j].logprobs.push_back(logprob);
        }
      }
      draw(sampler, &rows[from * count], (to - from) * count, fresh - (count > 1), chance);
    });
    const double spent = now() - begin;
    random.next();
    if (k.find("file")) writeRows(k.text("file"), rows);
    return seconds(spent) + ",\"tokens_per_s\":" + std::to_string(rows.size() * fresh / spent);
  }

  void writeRows(const std::string& file, const std::vector<Row>& rows) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(fopen(file.c_str(), "w"), fclose);
    if (!out) throw std::runtime_error("cannot write " + file);
    for (const Row& row : rows) {
      for (int id : row.all) fprintf(out.get(), "%d ", id);
      for (float logprob : row.logprobs) fprintf(out.get(), "%.9g ", logprob);
      fputc('\n', out.get());
    }
  }

  // Rows that draw `new` tokens each turn and then read `seen` more; every fifth row reads other tokens than it drew.
  std::string rollout(const Command& k) {
    const int count = k.number("rows"), turns = k.number("turns"), length = k.number("prompt");
    const int fresh = k.number("new"), seen = k.number("seen");
    std::vector<Row> rows(count);
    std::vector<std::vector<int>> texts;
    for (int i = 0; i < count * turns; i++) texts.push_back(randomIds(i < count ? length : seen + (i % count % 5 == 0) * fresh));
    const double begin = now();
    for (int turn = 0; turn < turns; turn++)
      pool.run([&](int thread) {
        const int from = count * thread / pool.size, to = count * (thread + 1) / pool.size;
        Random chance{random.state + 7919 * (thread + 1)};
        for (int i = from; i < to; i++) {
          if (turn == 0) rows[i].cache.reserve(model->config, length + turns * (fresh + seen));
          else if (i % 5 == 0) {
            rows[i].cache.length -= fresh - 1;
            rows[i].unread.clear();
          }
          const auto& text = texts[turn * count + i];
          rows[i].unread.insert(rows[i].unread.end(), text.begin(), text.end());
        }
        draw(*samplers[thread], &rows[from], to - from, fresh, chance);
      });
    return seconds(now() - begin);
  }

  // A product of our shapes, by all threads at once: rows are divided.
  std::string product(const Command& k) {
    const int m = k.number("m") / pool.size, n = k.number("n"), depth = k.number("k");
    const bool tall = k.number("tall") != 0;
    std::vector<double> best(pool.size, 1e9);
    Buffer b(static_cast<size_t>(panels(n)) * (tall ? m * pool.size : depth) * COLUMNS);
    pool.run([&](int thread) {
      Buffer a(static_cast<size_t>(m) * padded(depth)), c(static_cast<size_t>(tall ? depth : m) * padded(n)), scratch;
      Buffer right(static_cast<size_t>(m) * padded(n));
      const int repeat = std::max(1, static_cast<int>(2e9 / (2.0 * m * n * depth)));
      for (int i = 0; i < 9; i++) {
        const double begin = now();
        for (int j = 0; j < repeat; j++)
          if (tall) multiplyTall(depth, n, m, a, padded(depth), right, padded(n), c, padded(n), scratch);
          else multiply(m, n, depth, a, padded(depth), b, c, padded(n));
        if (i > 0) best[thread] = std::min(best[thread], (now() - begin) / repeat);
      }
    });
    return "\"gflops\":" + std::to_string(2.0 * m * pool.size * n * depth / *std::max_element(best.begin(), best.end()) / 1e9);
  }
};

}  // namespace

int main(int argc, char** argv) {
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _mm_setcsr(_mm_getcsr() | 0x40);
  Session session(argc > 1 ? atoi(argv[1]) : 2);
  for (Command command; std::getline(std::cin, command.line);) {
    std::string reply;
    try {
      reply = session.handle(command);
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{%s,\"peak_mb\":%ld}\n", reply.c_str(), usage.ru_maxrss / 1024);
    fflush(stdout);
  }
}
