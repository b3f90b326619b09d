package http1

// Response is the head of an upstream's answer. Its slices point into the bytes
// that it was parsed from.
type Response struct {
	Status  int
	Minor   int      // HTTP/1.Minor: 0, or 1 for 1.1 and anything later
	Headers []Header // without those that Connection names
	Head    []byte   // raw, blank line included
	Length  int64    // of the body that follows: 0 if the status or a HEAD allows none, -1 if it is chunked or ends with the connection
	Chunked bool
	Close   bool // the connection accepts no further request
}

// Get returns the value of the first header of that name in any case, nil if
// there is none.
func (r *Response) Get(name string) []byte { return get(r.Headers, name) }

// read fills the response from a parsed head.
func (r *Response) read(p *headParser, head []byte, method string) *Error {
	*r = Response{Head: head, Headers: p.headers}
	if err := r.readLine(p.first); err != nil {
		return err
	}
	length, err := r.readFields()
	if err != nil {
		return err
	}
	switch {
	case method == "HEAD" || r.Status == 304:
		r.Chunked = false
	case bodiless(r.Status):
		// If the sender sends a body here, its bytes would be parsed as the
		// next answer.
		r.Close = r.Close || r.Chunked || length > 0
		r.Chunked = false
	case r.Chunked:
		r.Length = -1
	case length >= 0:
		r.Length = length
	default:
		r.Length, r.Close = -1, true
	}
	return nil
}

// readLine reads "HTTP/1.x NNN[ reason]".
func (r *Response) readLine(line []byte) *Error {
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[7] < '0' || line[7] > '9' || line[8] != ' ' {
		return refuse(502, "the answer does not begin with a version of HTTP/1 and a status: %q", clip(line))
	}
	status, ok := digits(line[9:12])
	if !ok || status < 100 || status > 599 || len(line) > 12 && line[12] != ' ' {
		return refuse(502, "the answer has no status of three digits: %q", clip(line))
	}
	r.Status, r.Minor = int(status), 1
	if line[7] == '0' {
		r.Minor, r.Close = 0, true
	}
	return nil
}

// readFields checks the fields that frame the body; length is -1 without a
// Content-Length.
func (r *Response) readFields() (length int64, err *Error) {
	length = -1
	var hop connection
	for i := range r.Headers {
		h := &r.Headers[i]
		switch len(h.Name) {
		case len("connection"):
			if foldEqual(h.Name, "connection") {
				hop.read(h.Value)
			}
		case len("content-length"):
			if !foldEqual(h.Name, "content-length") {
				continue
			}
			n, ok := digits(h.Value)
			if !ok || length >= 0 {
				return 0, refuse(502, "the answer has an invalid or a second Content-Length: %q", clip(h.Value))
			}
			length = n
		case len("transfer-encoding"):
			if !foldEqual(h.Name, "transfer-encoding") {
				continue
			}
			if r.Chunked || r.Minor == 0 || !foldEqual(h.Value, "chunked") {
				return 0, refuse(502, "the answer has an unsupported Transfer-Encoding: %q", clip(h.Value))
			}
			r.Chunked = true
		}
	}
	if r.Chunked && length >= 0 {
		return 0, refuse(502, "the answer has both a Content-Length and a chunked Transfer-Encoding")
	}
	r.Close = r.Close || hop.close
	if hop.names {
		var wrong string
		if r.Headers, wrong = cutNamed(r.Headers); wrong != "" {
			return 0, refuse(502, "invalid answer: %s", wrong)
		}
	}
	return length, nil
}

func get(headers []Header, name string) []byte {
	for i := range headers {
		if foldEqualAny(headers[i].Name, name) {
			return headers[i].Value
		}
	}
	return nil
}
