package engine

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/engine/wal"
	"fenec/internal/vfs"

	"github.com/cespare/xxhash/v2"
)

// incoming is the suffix of the side file of an image that is being installed.
const incoming = ".incoming"

// InstallImage writes the image src as the database at path and opens it. No file is at path until the image is complete,
// checked, replayed and on disk. It fails with fail.Invalid if the image is cut or changed, and with os.ErrExist if there
// is a database already.
func InstallImage(path string, src io.Reader, o Options) (*DB, error) {
	if _, err := o.withDefaults().FS.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = os.ErrExist
		}
		return nil, err
	}
	image, err := ReceiveImage(path, src, o)
	if err != nil {
		return nil, err
	}
	return image.Install()
}

// ReceivedImage is an image beside the path that it is meant for. Its caller calls Install or Discard.
type ReceivedImage struct {
	path string
	side string
	file *sideFile
	r    *replaying
}

// ReceiveImage writes the image src to a file beside path. It fails with fail.Invalid if the image is cut or changed. A file
// at path is not touched.
//
// The image is replayed and its documents are checked while it is received, so that little is left to do after its last
// byte.
func ReceiveImage(path string, src io.Reader, o Options) (*ReceivedImage, error) {
	o = o.withDefaults()
	side := path + incoming
	file, err := o.FS.OpenFile(side, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, storageError("writing the image", err)
	}
	i := &ReceivedImage{path, side, &sideFile{File: file}, newReplaying(newDB(path, o))}
	err = i.file.fill(src, i.r)
	replayed, unsynced := i.r.end(), i.file.wait()
	switch {
	case err != nil:
	case replayed != nil:
		err = replayed
	case unsynced != nil:
		err = storageError("syncing the image", unsynced)
	default:
		err = i.r.db.fillRandom(i.r.db.own[:])
	}
	if err != nil {
		i.Discard()
		return nil, err
	}
	return i, nil
}

// Position returns the number of the last change in the image and the history of that change.
func (i *ReceivedImage) Position() (seq uint64, history string) { return i.r.db.Position() }

// Discard removes the image. It has no effect after Install.
func (i *ReceivedImage) Discard() {
	if i.file == nil {
		return
	}
	i.file.Close()
	i.r.db.opts.FS.Remove(i.side) // if that fails, opening the directory removes it
	i.file = nil
}

// Install gives the image its path and opens it. A file at the path, which must not be open, is replaced. After an error, the
// path has the file that was there or the image, or, if none was there, none.
func (i *ReceivedImage) Install() (*DB, error) {
	db, file := i.r.db, i.file
	_, found := db.opts.FS.Stat(i.path)
	if err := db.opts.FS.Rename(i.side, i.path); err != nil {
		i.Discard()
		return nil, storageError("installing the image", err)
	}
	i.file = nil
	if err := db.opts.FS.SyncDir(filepath.Dir(i.path)); err != nil {
		file.Close()
		if errors.Is(found, fs.ErrNotExist) {
			db.opts.FS.Remove(i.path) // the rename may not be durable, so the file must not be found under its name
		}
		return nil, storageError("installing the image", err)
	}
	db.replayed = 0 // the file is in more than one segment
	db.trim()
	db.log = i.r.stream.Log(i.path, db.walOptions(), file.File)
	db.space.file = db.log.Size()
	if db.beginFeed(); db.opts.Feed != nil {
		db.opts.Feed.Synced(0) // the whole image is on disk
	}
	return db, nil
}

// trim frees the room that the segments of a received image have to spare: with many small tenants it would be most of their
// memory.
func (db *DB) trim() {
	for i, segment := range db.memory.segments {
		if cap(segment)-len(segment) <= len(segment)/8 {
			continue
		}
		db.memory.segments[i] = slices.Clone(segment)
		if db.fed && db.opts.Feed != nil {
			db.opts.Feed.Relocated(i, db.memory.segments[i])
		}
	}
}

// replaying replays an image in a goroutine while another one receives it.
type replaying struct {
	db     *DB
	stream *wal.Stream
	pieces chan []byte   // of the image, in order
	spare  chan []byte   // replayed pieces, for reuse
	done   chan struct{} // closed once all that was received is replayed
	err    error         // the error of the replay, set before done is closed
}

// imagePieces is the number of pieces of an image in memory at a time.
const imagePieces = 4

// newReplaying starts the goroutine; end waits for it.
func newReplaying(db *DB) *replaying {
	r := &replaying{
		db: db, pieces: make(chan []byte, imagePieces), spare: make(chan []byte, imagePieces), done: make(chan struct{}),
	}
	r.stream = wal.NewStream(r.record)
	for range imagePieces {
		r.spare <- nil
	}
	go func() {
		defer close(r.done)
		for p := range r.pieces {
			if r.err == nil {
				_, r.err = r.stream.Write(p)
			}
			r.spare <- p
		}
		if r.err == nil {
			r.err = r.stream.End()
		}
	}()
	return r
}

// record replays one record and checks the documents in it.
func (r *replaying) record(kind wal.Kind, data []byte, from, to int) error {
	if err := r.db.replay(kind, data, from, to); err != nil || kind == wal.Derived || kind == wal.Fork {
		return err
	}
	if kind == wal.Block {
		from += blockHead
	}
	return operations(data, from, to, func(o *operation) error {
		if o.Op == opPut {
			return doc.Validate(o.Doc)
		}
		return nil
	})
}

// end waits until all that was received is replayed, and returns the error of that.
func (r *replaying) end() error {
	close(r.pieces)
	<-r.done
	if r.err == nil && r.db.history == (history{}) {
		r.err = errHeadless()
	}
	if r.err != nil {
		return fail.New(fail.Invalid, "the image cannot be replayed: %s", r.err)
	}
	return nil
}

func errHeadless() error {
	return fail.New(fail.Damaged, "the file has no head: it does not begin with an image")
}

// syncEvery is how many bytes of an image are written before a sync of them begins, while the rest is received.
const syncEvery = 8 << 20

// sideFile is the file that an image is written to. It is synced while it is written, so that the last sync is short.
type sideFile struct {
	vfs.File
	written  int64
	unsynced int64      // bytes written since the last sync began
	syncing  chan error // receives the result of the running sync; nil if none runs
}

// imagePiece is how many bytes of an image are read at a time.
const imagePiece = 1 << 20

// fill writes an image without its trailer to the file, passes what it writes to r, checks the trailer, and begins the
// last sync.
func (f *sideFile) fill(src io.Reader, r *replaying) error {
	digest := xxhash.New()
	var kept [imageTrailer]byte // the last bytes received: the trailer, unless more follow
	held := 0
	for {
		buf := <-r.spare
		if buf == nil {
			buf = make([]byte, 0, imagePiece+imageTrailer)
		}
		buf = append(buf[:0], kept[:held]...)
		n, err := io.ReadFull(src, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fail.New(fail.Invalid, "the image broke off after %d bytes: %v", f.written+int64(len(buf)), err)
		}
		if len(buf) < imageTrailer {
			return fail.New(fail.Invalid, "the image is truncated: it has no end mark")
		}
		body := buf[:len(buf)-imageTrailer]
		held = copy(kept[:], buf[len(body):])
		digest.Write(body)
		if err := f.append(body); err != nil {
			return storageError("writing the image", err)
		}
		r.pieces <- body
		if last {
			break
		}
	}
	if !bytes.Equal(kept[:], trailer(digest, f.written)) {
		return fail.New(fail.Invalid, "the image is truncated or changed: its digest is not that of its bytes")
	}
	if err := f.wait(); err != nil {
		return storageError("syncing the image", err)
	}
	f.begin()
	return nil
}

// append appends p to the file, and begins a sync if enough is unsynced and none is running.
func (f *sideFile) append(p []byte) error {
	if _, err := f.WriteAt(p, f.written); err != nil {
		return err
	}
	f.written += int64(len(p))
	if f.unsynced += int64(len(p)); f.unsynced < syncEvery {
		return nil
	}
	if f.syncing != nil {
		select {
		case err := <-f.syncing:
			f.syncing = nil
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	f.begin()
	return nil
}

// begin starts a sync, which the next wait waits for.
func (f *sideFile) begin() {
	f.unsynced = 0
	f.syncing = make(chan error, 1)
	go func(done chan<- error) { done <- f.Sync() }(f.syncing)
}

// wait waits for the running sync, if there is one.
func (f *sideFile) wait() error {
	if f.syncing == nil {
		return nil
	}
	err := <-f.syncing
	f.syncing = nil
	return err
}
