package node

import (
	"fenec/engine/fail"
	"fenec/internal/http1"
	"fenec/node/tenants"
)

// revisionHeader carries a revision: in the answer to GET .../frozen that of the reported state, in a request that changes a
// tenant the one it was decided on.
const revisionHeader = "Fenec-Revision"

// seqHeader in a request that changes a tenant is the change at which its copy must be.
const seqHeader = "Fenec-Seq"

// readCondition returns the condition in the headers of a request that changes a tenant.
func readCondition(r *http1.Request) (c tenants.Condition, err error) {
	for i := range r.Headers {
		h := &r.Headers[i]
		switch {
		case h.Is("fenec-revision"):
			if c.Revision != "" || len(h.Value) == 0 {
				return c, fail.New(fail.Invalid, "%s: expected one revision, as GET .../frozen returns it", revisionHeader)
			}
			c.Revision = string(h.Value)
		case h.Is("fenec-seq"):
			if c.Named {
				return c, fail.New(fail.Invalid, "%s is given twice", seqHeader)
			}
			c.Named = true
			if c.Seq, err = parseChange(seqHeader, h.Value); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// adminRevision is POST .../revision: from then on no request that was decided on an earlier revision of the name acts.
func (n *Node) adminRevision(r *http1.Request, name string) http1.Answer {
	c, err := readCondition(r)
	var revision string
	if err == nil {
		revision, err = n.tenants.Renew(name, c)
	}
	if err != nil {
		return n.answerError(r, err)
	}
	body := append(append(append(r.Scratch(), `{"revision":"`...), revision...), `"}`...)
	return http1.Answer{Status: 200, Headers: withRevision(http1.JSON, revision), Body: body}
}

func withRevision(headers []http1.Header, revision string) []http1.Header {
	return append(headers[:len(headers):len(headers)], http1.Header{Name: []byte(revisionHeader), Value: []byte(revision)})
}
