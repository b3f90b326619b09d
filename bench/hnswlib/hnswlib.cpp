// hnswlib as a process that is told what to measure: the peer of `bench vectors`.
//
//   hnswlib BASE QUERIES DIM M EF_CONSTRUCTION
//
// BASE and QUERIES are files of little-endian float32 vectors of length one, so that the inner product is the cosine.
// A line on standard input is a command, a line on standard output its answer:
//
//   build          build the index anew on this thread; answers the milliseconds
//   search EF K    search each query on this thread; answers the median microseconds, then the K ids of each query,
//                  best first, an id being a vector's place in BASE
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <hnswlib/hnswlib.h>

using clock_type = std::chrono::steady_clock;
using index_type = hnswlib::HierarchicalNSW<float>;

static double micros_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - start).count();
}

static std::vector<float> read_vectors(const char *path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<float> v(in.tellg() / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char *>(v.data()), v.size() * sizeof(float));
  if (!in) {
    std::cerr << "cannot read " << path << "\n";
    std::exit(1);
  }
  return v;
}

static void search(index_type &index, const std::vector<float> &queries, size_t dim, size_t ef, size_t k) {
  std::vector<double> took;
  std::vector<size_t> ids;
  index.setEf(ef);
  for (size_t at = 0; at < queries.size(); at += dim) {
    auto start = clock_type::now();
    auto found = index.searchKnn(&queries[at], k);
    took.push_back(micros_since(start));
    size_t first = ids.size();
    for (; !found.empty(); found.pop()) ids.push_back(found.top().second);  // the worst first
    std::reverse(ids.begin() + first, ids.end());
  }
  std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
  std::cout << took[took.size() / 2];
  for (size_t id : ids) std::cout << ' ' << id;
  std::cout << std::endl;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    std::cerr << "usage: hnswlib BASE QUERIES DIM M EF_CONSTRUCTION\n";
    return 2;
  }
  auto base = read_vectors(argv[1]), queries = read_vectors(argv[2]);
  size_t dim = std::stoul(argv[3]), m = std::stoul(argv[4]), ef_construction = std::stoul(argv[5]);
  size_t n = base.size() / dim;
  hnswlib::InnerProductSpace space(dim);
  std::unique_ptr<index_type> index;
  for (std::string command; std::cin >> command;) {
    if (command == "build") {
      index.reset();
      auto start = clock_type::now();
      index = std::make_unique<index_type>(&space, n, m, ef_construction);
      for (size_t i = 0; i < n; i++) index->addPoint(&base[i * dim], i);
      std::cout << micros_since(start) / 1e3 << std::endl;
    } else if (command == "search") {
      size_t ef, k;
      std::cin >> ef >> k;
      search(*index, queries, dim, ef, k);
    }
  }
}
