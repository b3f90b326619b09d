package text

import "sync"

// batchBytes is about how much text is counted at once when an index is built.
const batchBytes = 1 << 20

// Build enters about n documents at once, as Add would in the order each gives them. It calls each once, and add keeps
// nothing of a text. With more than one worker texts are read side by side.
func (x *Index) Build(n, workers int, each func(add func(id int64, text []byte))) {
	if len(x.ids) == 0 {
		x.ids, x.lengths = make([]int64, 0, n), make([]uint32, 0, n)
	}
	b := builder{x: x, workers: workers, batch: new(batch), turn: closed()}
	defer b.finish()
	each(b.add)
}

// builder hands batches of texts to workers. Each counts the terms of a batch by itself; they enter them in turn.
type builder struct {
	x       *Index
	workers int
	batch   *batch          // that is being filled
	turn    <-chan struct{} // is closed when all batches before it are entered

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

	turn <-chan struct{} // closed when it is to be entered
	done chan struct{}   // closed when it is
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
		b.hand()
	}
}

// hand gives the batch to a worker and begins the next one.
func (b *builder) hand() {
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

// finish enters what is left and waits for the workers.
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
