package node

import (
	"bytes"
	"errors"
	"io"

	"fenec/engine/fail"
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
	return n.sendImage(r, name, false)
}

// sendImage streams a tenant's image, as of the change in its head. The tenant is in use until the last byte is sent;
// deleting it ends the stream, whose reader sees a truncated image. With onDisk, all of it is on disk here before it is sent.
func (n *Node) sendImage(r *http1.Request, name string, onDisk bool) http1.Answer {
	image, err := n.tenants.OpenImage(name)
	if err != nil {
		return n.answerError(r, err)
	}
	if onDisk {
		if err := image.Sync(); err != nil {
			return n.answerError(r, errors.Join(err, image.Close()))
		}
	}
	a := http1.Answer{Status: 200, Headers: imageHeaders(image.Seq, image.History), Length: image.Size}
	a.Stream = func(w *http1.Writer) (err error) {
		defer func() { err = errors.Join(err, image.Close()) }()
		return copyUntil(w, image, image.Gone())
	}
	if r.Method == "HEAD" { // only the length is sent
		if err := image.Close(); err != nil {
			return n.answerError(r, err)
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
	c, err := readCondition(r)
	var token string
	if err == nil {
		token, err = installToken(r)
	}
	var seq uint64
	if err == nil {
		seq, err = n.tenants.Install(name, token, c, r.BodyReader(), r.Length())
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
