package hnsw

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"fenec/engine/fail"
	"fenec/engine/vector"
)

var quants = []vector.Quant{0, vector.Int8, vector.Bit}

// smallOptions make a graph of few nodes that has upper levels, and is walked.
func smallOptions(q vector.Quant) Options {
	return Options{Dim: 8, Metric: vector.L2, M: 4, EFConstruction: 20, Quant: q}
}

// small is documents, some with equal vectors, and their graph, with a few tombstones and a node that was never linked.
func small(q vector.Quant) (docs, *Graph) {
	d, _ := clustered(20, 110, 8, 10, 0)
	for id := int64(201); id <= 210; id++ {
		d[id] = d[id-100]
	}
	g := New(smallOptions(q), d.own)
	d.eachVector(g.Add)
	gone := func(id int64) { delete(d, id); g.Remove(id) }
	gone(20)
	g.Link(1, 1000)
	gone(30)
	gone(31)
	return d, g
}

func TestALoadedGraphIsTheOneSaved(t *testing.T) {
	for _, q := range quants {
		d, g := small(q)
		saved := g.AppendBinary([]byte("before"))[len("before"):]
		loaded, err := d.load(saved, smallOptions(q))
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(t, loaded)
		if loaded.Len() != g.Len() || loaded.Nodes() != g.Nodes() || loaded.Pending() != 0 || loaded.Tombstones() != g.Tombstones() {
			t.Errorf("quant %q: %d documents, %d nodes, %d pending, %d tombstones; saved were %d, %d, 0, %d", q,
				loaded.Len(), loaded.Nodes(), loaded.Pending(), loaded.Tombstones(), g.Len(), g.Nodes(), g.Tombstones())
		}
		if !bytes.Equal(loaded.AppendBinary(nil), saved) {
			t.Errorf("quant %q: saved again it is not the same", q)
		}
		for id, v := range d {
			if got, want := loaded.Search(v, 3, 4, nil, nil), g.Search(v, 3, 4, nil, nil); got[0].ID != want[0].ID {
				t.Errorf("quant %q: the nearest to document %d is %v, in the graph that was saved %v", q, id, got, want)
			}
		}
	}
}

func TestALoadedGraphHasTheDocumentsAsTheyAre(t *testing.T) {
	for _, q := range quants {
		d, g := small(q)
		saved := g.AppendBinary(nil)
		delete(d, 1)   // gone
		delete(d, 110) // one of two with its vector
		d[2] = []float32{1, 2, 3, 4, 5, 6, 7, 8}
		d[104] = d[2]  // one of two has another vector
		d[1000] = d[3] // new, with the vector of a node
		d[1001] = []float32{9, 9, 9, 9, 9, 9, 9, 9}
		loaded, err := d.load(saved, smallOptions(q))
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(t, loaded)
		if loaded.Len() != len(d) || loaded.Pending() != 2 || loaded.Tombstones() != g.Tombstones()+2 {
			t.Errorf("quant %q: %d documents, %d pending, %d tombstones, want %d, 2, %d",
				q, loaded.Len(), loaded.Pending(), loaded.Tombstones(), len(d), g.Tombstones()+2)
		}
		for linked := range 2 {
			for id, v := range d {
				if got, want := loaded.Search(v, 5, 1000, nil, nil), d.nearest(vector.L2, v, 5, nil); !slices.Equal(got, want) {
					t.Fatalf("quant %q, linked %d: nearest to %d: %v, want %v", q, linked, id, got, want)
				}
			}
			loaded.Link(1, 10)
		}
	}
}

func TestAGraphIsNotLoaded(t *testing.T) {
	d, g := small(0)
	saved := g.AppendBinary(nil)
	refused := func(name string, b []byte, o Options, d docs) {
		t.Helper()
		if _, err := d.load(b, o); fail.KindOf(err) != fail.Damaged {
			t.Errorf("%s: %v, want an error of kind %v", name, err, fail.Damaged)
		}
	}
	for name, change := range map[string]func(o *Options){
		"another dimension":       func(o *Options) { o.Dim++ },
		"another metric":          func(o *Options) { o.Metric = vector.Cosine },
		"another m":               func(o *Options) { o.M++ },
		"another ef_construction": func(o *Options) { o.EFConstruction++ },
		"another quantisation":    func(o *Options) { o.Quant = vector.Bit },
	} {
		o := smallOptions(0)
		change(&o)
		refused(name, saved, o, d)
	}
	few := maps.Clone(d)
	for id := range few {
		if id%3 == 0 {
			delete(few, id)
		}
	}
	refused("too many documents gone", saved, smallOptions(0), few)
	for n := range saved {
		refused("a prefix", saved[:n], smallOptions(0), d)
		flipped := slices.Clone(saved)
		flipped[n] ^= 1 << (n % 8)
		refused("a flipped bit", flipped, smallOptions(0), d)
	}
	refused("bytes behind", append(slices.Clone(saved), 0), smallOptions(0), d)
}

func TestAGraphWithARightChecksumIsNotLoadedEither(t *testing.T) {
	d, g := small(0)
	body := g.AppendBinary(nil)
	body = body[:len(body)-sumSize]
	refused := 0
	for at := range body {
		b := slices.Clone(body)
		b[at] ^= 1 << (at % 8)
		loaded, err := d.load(sealed(b), smallOptions(0))
		if err != nil {
			refused++
			continue
		}
		checkLoaded(t, loaded, d)
	}
	if refused < len(body)/4 {
		t.Errorf("of %d changes %d are refused", len(body), refused)
	}
	for n := range body {
		if _, err := d.load(sealed(slices.Clone(body[:n])), smallOptions(0)); err == nil {
			t.Fatalf("the first %d of %d bytes are loaded", n, len(body))
		}
	}
}

// sealed is b with its checksum.
func sealed(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b)) }

// checkLoaded holds a graph that was loaded from whatever it was to finding all documents.
func checkLoaded(t *testing.T, g *Graph, d docs) {
	t.Helper()
	checkGraph(t, g)
	q := make([]float32, g.Dim)
	for _, ef := range []int{1, 1000} {
		if got := g.Search(q, len(d)+1, ef, nil, nil); len(got) != len(d) {
			t.Fatalf("%d documents are found, want %d", len(got), len(d))
		}
	}
	g.Search(q, 1, 1, nil, nil)
	g.Link(1, 100)
}

func FuzzLoad(f *testing.F) {
	d, _ := clustered(21, 30, 2, 3, 0)
	options := func(bits bool) Options {
		o := Options{Dim: 2, Metric: vector.L2, M: 2, EFConstruction: 4}
		if bits {
			o.Quant = vector.Bit
		}
		return o
	}
	for _, bits := range []bool{false, true} {
		body := d.built(options(bits), 1).AppendBinary(nil)
		f.Add(body[:len(body)-sumSize], bits)
	}
	f.Fuzz(func(t *testing.T, b []byte, bits bool) {
		o := options(bits)
		if _, err := d.load(b, o); err == nil && len(b) < sumSize {
			t.Fatal("what has no checksum is loaded")
		}
		if g, err := d.load(sealed(slices.Clone(b)), o); err == nil {
			checkLoaded(t, g, d)
		}
	})
}

func TestOnlyANodeOfTheHighestLevelIsTheEntry(t *testing.T) {
	d, g := small(0)
	for node := range uint32(g.Nodes()) {
		g.entry = node
		_, err := d.load(g.AppendBinary(nil), smallOptions(0))
		if right := g.level(int(node)) == g.top; (err == nil) != right {
			t.Errorf("entry %d of level %d, the highest is %d: %v", node, g.level(int(node)), g.top, err)
		}
	}
}
