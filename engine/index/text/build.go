package text

import "sync"

// batchBytes is about how much text is counted at a time when an index is built.
const batchBytes = 1 << 20

// Build adds about n documents, in the order in which each calls add. It calls each once, and add does not keep the
// text. With more than one worker, texts are read in parallel.
func (x *Index) Build(n, workers int, each func(add func(id int64, text []byte))) {
	if len(x.ids) == 0 {
		x.ids, x.lengths = make([]int64, 0, n), make([]uint32, 0, n)
	}
	b := builder{x: x, workers: workers, batch: new(batch), turn: closed()}
	defer b.finish()
	each(b.add)
}

// builder sends batches of texts to workers. Each worker counts the terms of a batch by itself; the batches are entered
// in order.
type builder struct {
	x       *Index
	workers int
	batch   *batch          // the one being filled
	turn    <-chan struct{} // closed when all batches before it are entered

	full    chan *batch // nil until there is one
	empty   chan *batch
	running sync.WaitGroup
}

// batch is a number of documents.
type batch struct {
	ids   []int64
	ends  []int // of each text in texts
	texts []byte
	tally tally

	turn <-chan struct{} // closed when the batch may be entered
	done chan struct{}   // closed when it is entered
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (b *builder) add(id int64, text []byte) {
	t := b.batch
	t.ids = append(t.ids, id)
	t.texts = append(t.texts, text...)
	t.ends = append(t.ends, len(t.texts))
	if len(t.texts) >= batchBytes {
		b.send()
	}
}

// send sends the batch to a worker and begins the next one.
func (b *builder) send() {
	if b.workers < 2 {
		b.batch.count(b.x.o)
		b.batch.enter(b.x)
		return
	}
	if b.full == nil {
		b.full, b.empty = make(chan *batch), make(chan *batch, b.workers+1)
		for range b.workers {
			b.empty <- new(batch)
			b.running.Go(b.work)
		}
	}
	b.batch.turn, b.batch.done = b.turn, make(chan struct{})
	b.turn = b.batch.done
	b.full <- b.batch
	b.batch = <-b.empty
}

func (b *builder) work() {
	for t := range b.full {
		t.count(b.x.o)
		<-t.turn
		t.enter(b.x)
		close(t.done)
		b.empty <- t
	}
}

// finish enters the rest and waits for the workers.
func (b *builder) finish() {
	if b.full != nil {
		close(b.full)
		b.running.Wait()
	}
	b.batch.count(b.x.o)
	b.batch.enter(b.x)
}

// count counts the terms of the texts.
func (t *batch) count(o Options) {
	t.tally.reset(o)
	from := 0
	for _, end := range t.ends {
		t.tally.add(t.texts[from:end])
		from = end
	}
}

// enter enters the documents and empties the batch.
func (t *batch) enter(x *Index) {
	x.enter(&t.tally, t.ids)
	t.ids, t.ends, t.texts = t.ids[:0], t.ends[:0], t.texts[:0]
}
