package derived

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fenec/engine/doc"
	"fenec/engine/index/hnsw"
)

// graph leaves out nulls. Writes only add vectors to the graph unlinked. A search measures each unlinked vector until
// the linker has linked it.
type graph struct {
	*hnsw.Graph
	index  *Index
	floats []float32 // of a vector whose numbers are stored in half the width

	// linking serializes what may run concurrently with searches but not with itself: Link, AppendBinary and counting what
	// they change. All of it runs under the lock, shared or not.
	linking sync.Mutex
	step    int // how many vectors the last step would have linked in its time

	moved atomic.Int64 // vectors added and removed
	saved atomic.Int64 // those of moved that the graph in the file includes
}

// graphOptions returns the options of the graph of x.
func (x *Index) graphOptions() hnsw.Options {
	o := x.declared.HNSW
	return hnsw.Options{Dim: x.vector.Dim, Metric: o.Metric, M: o.M, EFConstruction: o.EFConstruction, Quant: o.Quant}
}

// isVector reports whether v is a vector of the type of the field of x. A file made by hand may hold others.
func (x *Index) isVector(v doc.Value) bool {
	return v.Kind == doc.Vector && v.Dim() == x.vector.Dim && (v.N != 0) == x.vector.F16
}

// ownVector returns the function by which a graph of x reads the vectors of documents.
func (x *Index) ownVector(get Lookup) hnsw.Own {
	return func(id int64, dst []float32) []float32 {
		d := get(id)
		if d == nil {
			return nil
		}
		v := x.value(d)
		if !x.isVector(v) {
			return nil
		}
		return v.Floats(dst)
	}
}

func (x *Index) emptyGraph(get Lookup) *graph {
	return &graph{Graph: hnsw.New(x.graphOptions(), x.ownVector(get)), index: x}
}

// restore returns the graph in the file, updated for the current documents: vectors that it lacks are left to be linked.
// It returns nil if there is no graph or it is invalid.
func (x *Index) restore() builtIndex {
	kept := x.kept.whole.Swap(nil)
	if kept == nil {
		return nil
	}
	s := &graph{index: x}
	var err error
	s.Graph, err = hnsw.Load(kept.bytes(), x.graphOptions(), x.ownVector(x.of.docs.Get), x.of.docs.Len(), func(add func(id int64, v []float32)) {
		x.of.docs.Ascend(1, func(d doc.Document) bool {
			if v := x.value(d); x.isVector(v) {
				add(d.ID(), s.view(v))
			}
			return true
		})
	})
	if err != nil {
		x.of.database.opts.Log.Warn().Err(err).Str("collection", x.of.name).Str("index", x.on).
			Msg("the graph of a vector index cannot be used and is rebuilt")
		return nil
	}
	s.saved.Store(-int64(s.waiting()))
	return s
}

// fill leaves all vectors to be linked.
func (s *graph) fill(n int, each func(add func(v doc.Value, id int64))) {
	s.Reserve(n)
	each(s.put)
}

func (s *graph) add(v doc.Value, id int64) {
	s.put(v, id)
	s.index.of.database.linker.want()
}

func (s *graph) put(v doc.Value, id int64) {
	if s.index.isVector(v) {
		s.Add(id, s.view(v))
		s.moved.Add(1)
	}
}

// view returns the numbers of v, valid until the next call.
func (s *graph) view(v doc.Value) []float32 {
	if !s.index.vector.F16 {
		return v.Floats(nil)
	}
	s.floats = v.Floats(s.floats)
	return s.floats
}

func (s *graph) remove(v doc.Value, id int64) {
	if s.index.isVector(v) {
		s.Remove(id)
		s.moved.Add(1)
	}
}

func (s *graph) bytes() int64 {
	s.linking.Lock()
	defer s.linking.Unlock()
	return s.Bytes()
}

// linkFor is about how long one step of linking lasts, and so how long a writer may wait for one.
const linkFor = 4 * time.Millisecond

// mostLinked is the most vectors that one step links: a batch of the graph's.
const mostLinked = 64

// linkStep links unlinked vectors for about linkFor and returns how many. If there are none it continues a recoding of the
// graph and returns how many vectors were recoded.
func (s *graph) linkStep(workers int) (linked int) {
	s.linking.Lock()
	defer s.linking.Unlock()
	n := min(max(s.step, 1), s.Pending())
	if n == 0 {
		return s.Recode(workers, max(s.step, 1)) // a block takes no longer than to link a vector
	}
	began := time.Now()
	s.Link(workers, n)
	each := time.Since(began) / time.Duration(n)
	s.step = min(int(linkFor/max(each, 1)), 2*n, mostLinked)
	return n
}

// linkAll links all vectors of an index that no other goroutine can find yet. It stops if stopped returns an error.
func (s *graph) linkAll(stopped func(linked, of int) error) error {
	of := s.Pending()
	for s.Pending() > 0 {
		if err := stopped(of-s.Pending(), of); err != nil {
			return err
		}
		s.Link(runtime.GOMAXPROCS(0), mostLinked)
	}
	return nil
}

// waiting returns how many vectors are not linked.
func (s *graph) waiting() int {
	s.linking.Lock()
	defer s.linking.Unlock()
	return s.Pending()
}
