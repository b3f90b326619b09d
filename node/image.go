package node

import (
	"bytes"
	"errors"
	"io"
	"os"

	"fenec/engine"
	"fenec/engine/fail"
	"fenec/engine/feed"
	"fenec/internal/http1"
	"fenec/node/rest"
)

// copyBuffer is how many bytes of an image are copied at a time.
const copyBuffer = 256 << 10

var errGone = errors.New("the tenant is being deleted or the node is stopping")

// adminFile is GET and PUT /_admin/tenants/<t>/file.
func (n *Node) adminFile(r *http1.Request, name string) http1.Answer {
	if r.Method == "PUT" {
		return n.install(r, name)
	}
	return n.sendImage(r, name)
}

// sendImage streams a tenant's image, as of the change in its head. The tenant is in use until the last byte is sent;
// deleting it ends the stream, whose reader sees a truncated image.
func (n *Node) sendImage(r *http1.Request, name string) http1.Answer {
	t, err := n.acquire(name)
	if err != nil {
		return n.answerError(r, err)
	}
	var image io.ReadCloser
	var size int64
	var seq uint64
	err = n.withDescriptor(func() (err error) {
		image, size, seq, err = t.db.OpenImage()
		return err
	})
	if err != nil {
		n.release(t)
		return n.answerError(r, classified("the image cannot be opened", err))
	}
	_, history := t.db.Position()
	a := http1.Answer{Status: 200, Headers: imageHeaders(seq, history), Length: size}
	end := func() error {
		defer n.release(t)
		return image.Close()
	}
	a.Stream = func(w *http1.Writer) (err error) {
		defer func() { err = errors.Join(err, end()) }()
		return copyUntil(w, image, t.gone)
	}
	if r.Method == "HEAD" { // only the length is sent
		if err := end(); err != nil {
			return n.answerError(r, classified("the image cannot be closed", err))
		}
	}
	return a
}

var octets = []http1.Header{{Name: []byte("Content-Type"), Value: []byte("application/octet-stream")}}

func imageHeaders(seq uint64, history string) []http1.Header {
	return withType(positionHeaders(seq, history), octets)
}

// copyUntil copies src to w until gone is closed; it finishes a copy that is small enough to end in a moment.
func copyUntil(w io.Writer, src io.Reader, gone <-chan struct{}) error {
	buf := make([]byte, copyBuffer)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n < len(buf) {
			continue
		}
		select {
		case <-gone:
			return errGone
		default:
		}
	}
}

// install installs an image as a new tenant, which serves reads and refuses writes until it is thawed.
func (n *Node) install(r *http1.Request, name string) http1.Answer {
	h := hold{Held: true}
	c, err := readCondition(r)
	if err == nil {
		h.Token, err = installToken(r)
	}
	var seq uint64
	if err == nil {
		seq, err = n.installImage(name, h, c, r.BodyReader(), r.Length())
	}
	if err != nil {
		return n.answerError(r, err)
	}
	body := append(r.Scratch(), `{"tenant":"`...)
	body = append(append(body, name...), `","held":true,`...)
	body = append(appendNumber(body, "seq", int64(seq)), '}')
	return http1.Answer{Status: 201, Headers: http1.JSON, Body: body}
}

// installToken returns the token under which an install's query, `token=...` or nothing, has the image held.
func installToken(r *http1.Request) (string, error) {
	if len(r.Query) == 0 {
		return "", nil
	}
	raw, ok := bytes.CutPrefix(r.Query, []byte("token="))
	if !ok || bytes.IndexByte(raw, '&') >= 0 {
		return "", fail.New(fail.Invalid, "an image is installed with ?token=... or no query string, got %s", rest.Quoted(r.Query))
	}
	token, _, err := rest.Unescape(nil, raw, true)
	if err != nil {
		return "", err
	}
	return string(token), checkToken(string(token))
}

// installImage reads the image to its end. size is its length in bytes, negative if unknown. The hold is on disk before the
// file appears, so the copy never accepts writes in between.
func (n *Node) installImage(name string, h hold, c condition, image io.Reader, size int64) (seq uint64, err error) {
	if err := n.checkWritable(); err != nil {
		return 0, err
	}
	err = n.alone(name, c, func() error {
		if err = n.mustBeFree(name, c); err == nil {
			err = n.writeHold(name, nil, h)
		}
		if err == nil {
			seq, err = n.installLocked(name, h, image, size)
		}
		return err
	})
	return seq, err
}

func (n *Node) installLocked(name string, h hold, image io.Reader, size int64) (seq uint64, err error) {
	n.budget.open.Add(1)
	n.makeRoom(max(size, 0))
	o, changes := n.engineOptions(name)
	db, err := engine.InstallImage(n.path(name), image, o)
	if err == nil {
		n.refusals.forget(name)
		return n.putIn(name, h, db, changes)
	}
	n.budget.open.Add(-1)
	if errors.Is(err, os.ErrExist) {
		return 0, errTaken(name) // the file was created by hand meanwhile; its hold stays, to be safe
	}
	if found, existsErr := n.exists(name); existsErr == nil && !found {
		err = errors.Join(classified("the image cannot be installed", err), n.removeHold(name))
	}
	return 0, err
}

// putIn registers a database just installed as an open, held tenant, so that its first request need not read the file. It
// needs the gate.
func (n *Node) putIn(name string, h hold, db *engine.DB, changes *feed.Feed) (seq uint64, err error) {
	seq, _ = db.Position()
	n.ending.RLock()
	defer n.ending.RUnlock()
	if n.ended {
		return seq, db.Close()
	}
	n.register(n.newHeldTenant(name, db, changes, &h))
	n.makeRoom(0)
	return seq, nil
}
